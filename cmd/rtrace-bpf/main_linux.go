// Rtrace-bpf traces the allocator of a running process with eBPF and writes
// what it sees as a trace. See docs/cli/rtrace-bpf.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/tracer"
)

func main() {
	tracer.RunAsChild()
	// Without the right to it the tracer works all the same, but may lose events on a busy machine.
	_ = tracer.Prioritize()
	// A reader of our output that goes away is an error of the write, after
	// which the probes are removed in order.
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	hurry := make(chan struct{})
	go func() {
		<-signals
		cancel()
		<-signals
		close(hurry)
		// The third one does not even let the file be completed.
		<-signals
		os.Exit(int(cli.Failed))
	}()
	env := settings{outputDir: os.Getenv("SP_RTRACE_OUTPUT_DIR"), hurry: hurry}
	os.Exit(int(run(ctx, cli.FileStreams(os.Stdin, os.Stdout, os.Stderr), os.Args[1:], env)))
}

// settings are what the program has from its surroundings but for the command line.
type settings struct {
	outputDir string          // SP_RTRACE_OUTPUT_DIR
	hurry     <-chan struct{} // closed at the second signal: to end at once
}

// run is the whole program. Cancelling ctx ends the recording as planned.
func run(ctx context.Context, s cli.Streams, args []string, env settings) cli.ExitCode {
	var c config
	if len(args) == 2 && args[0] == "--generate" { // for make install
		program := cli.Program{Page: c.page()}
		return cli.Report(s.Err, name, program.Generate(args[1], "rtrace"))
	}
	err := c.parse(args, env)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		err = c.page().WriteText(s.Out)
	case err != nil:
		err = &cli.UsageError{Err: err}
	case c.version:
		_, err = fmt.Fprintln(s.Out, name, cli.BuildVersion())
	case c.dotnet.on:
		err = recordDotnet(ctx, s, &c, env.hurry)
	default:
		err = record(ctx, s, &c, env.hurry)
	}
	return cli.Report(s.Err, name, err)
}

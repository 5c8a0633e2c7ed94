// Rtrace-bpf traces the allocator of a running process with eBPF and writes
// what it sees as a trace. See docs/cli/rtrace-bpf.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/tracer"
)

func main() {
	tracer.RunAsChild()
	raw, _ := unix.Getpriority(unix.PRIO_PROCESS, 0) // cannot fail for the own one
	env := settings{variable: os.Getenv, nice: 20 - raw, launched: new(atomic.Bool)}
	// Without the right to it the tracer works all the same, but may lose events on a busy machine.
	_ = tracer.Prioritize()
	// A reader of our output that goes away is an error of the write, after
	// which the probes are removed in order. A command that we start would inherit
	// it if the signal were ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(context.Background())
	// Those who do not listen to these, or not yet, must not end by them.
	signal.Notify(make(chan os.Signal, 1), unix.SIGUSR1, unix.SIGUSR2)
	hurry := make(chan struct{})
	env.hurry = hurry
	go func() {
		next := env.signals()
		next()
		cancel()
		next()
		close(hurry)
		// The third one does not even let the file be completed.
		next()
		os.Exit(int(cli.Failed))
	}()
	os.Exit(int(run(ctx, cli.FileStreams(os.Stdin, os.Stdout, os.Stderr), os.Args[1:], env)))
}

// settings are what the program has from its surroundings but for the command line.
type settings struct {
	variable func(name string) string // of the environment; nil for none
	hurry    <-chan struct{}          // closed at the second signal: to end at once
	nice     int                      // the nice value with which it was started
	launched *atomic.Bool             // set when there is a command, to which the terminal's signals belong
}

// signals returns a function that waits for the next signal that is to end the
// recording. Those of a terminal's keys end the command that is traced, if one is, or
// are what it makes of them.
func (env *settings) signals() func() {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return func() {
		for sig := range signals {
			if sig != os.Interrupt || !env.launched.Load() {
				return
			}
		}
	}
}

// run is the whole program. Cancelling ctx ends the recording as planned.
func run(ctx context.Context, s cli.Streams, args []string, env settings) cli.ExitCode {
	var c config
	if len(args) == 2 && args[0] == "--generate" { // for make install
		program := cli.Program{Page: c.page()}
		return cli.Report(s.Err, name, program.Generate(args[1], "rtrace"))
	}
	err := c.parse(args, env)
	if err == nil {
		err = c.checkTerminal(s)
	}
	if err == nil && !c.quiet {
		for _, w := range c.warnings {
			fmt.Fprintln(s.Err, name+": warning: "+w)
		}
	}
	if c.command != nil && err == nil && !c.version {
		return launched(ctx, s, &c, env)
	}
	switch {
	case errors.Is(err, pflag.ErrHelp):
		err = c.page().WriteHelp(s.Out, c.flags.Topic())
	case err != nil:
		err = &cli.UsageError{Err: err}
	case c.version:
		_, err = fmt.Fprintln(s.Out, name, cli.BuildVersion())
	case c.modules.list:
		err = c.modules.print(s.Out)
	case c.ask.any():
		err = c.ask.tell(ctx, s.Err, c.quiet)
	case c.dotnet.on && !c.dotnet.native:
		err = recordDotnet(ctx, s, &c, env.hurry)
	case c.wait.on:
		err = recordNext(ctx, s, &c, env.hurry)
	default:
		err = recordAll(ctx, s, &c, env.hurry)
	}
	code := cli.Report(s.Err, name, err)
	if code == cli.Usage && (c.command != nil || slices.Contains(args, "--")) {
		return ownFailure
	}
	return code
}

// Rtrace-bpf traces the allocator of running processes with eBPF and writes their events as
// traces. See docs/cli/rtrace-bpf.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/tracer/host"
)

func main() {
	host.RunAsChild()
	raw, _ := unix.Getpriority(unix.PRIO_PROCESS, 0) // cannot fail for the calling process
	env := settings{variable: os.Getenv, nice: 20 - raw, launched: new(atomic.Bool)}
	// Without the right to do this, the tracer works, but may lose events on a busy machine.
	_ = host.Prioritize()
	// If the reader of the output goes away, the write fails, and the probes are removed in
	// order. An ignored signal would be inherited by the command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(context.Background())
	// These signals must not end rtrace-bpf before it handles them, or when it does not handle
	// them at all.
	signal.Notify(make(chan os.Signal, 1), unix.SIGUSR1, unix.SIGUSR2)
	hurry := make(chan struct{})
	env.hurry = hurry
	go func() {
		next := env.signals()
		next()
		cancel()
		next()
		close(hurry)
		// The third signal ends rtrace-bpf before the files are complete.
		next()
		os.Exit(int(cli.Failed))
	}()
	os.Exit(int(run(ctx, cli.FileStreams(os.Stdin, os.Stdout, os.Stderr), os.Args[1:], env)))
}

// settings are what the program gets from its environment in addition to the command line.
type settings struct {
	variable func(name string) string // of the environment; nil for none
	hurry    <-chan struct{}          // closed at the second signal: to end at once
	nice     int                      // the nice value with which it was started
	launched *atomic.Bool             // set while the terminal's signals are for a command; nil in tests
}

// signals returns a function that waits for the next signal that ends the recording. If a
// command is traced, signals of a terminal's keys are for the command. A terminal that goes away,
// such as an ssh connection that breaks, ends the recording as well, unless rtrace-bpf was started
// to outlive it (nohup).
func (env *settings) signals() func() {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	return func() {
		for sig := range signals {
			if sig != os.Interrupt || !env.launched.Load() {
				return
			}
		}
	}
}

// run is the whole program. When ctx ends, the recording ends as planned.
func run(ctx context.Context, s cli.Streams, args []string, env settings) cli.ExitCode {
	if len(args) == 2 && args[0] == "--generate" { // for make install
		program := completed()
		return cli.Report(s.Err, name, program.Generate(args[1], "rtrace"))
	}
	if len(args) > 0 {
		if v, ok := findVerb(args[0]); ok {
			return v.run(ctx, s, args[1:], env)
		}
	}
	return recordUnnamed(ctx, s, args, env)
}

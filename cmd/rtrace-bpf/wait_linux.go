package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer"
	"rtrace-bpf/tracer/arrival"
	"rtrace-bpf/tracer/launch"
)

// waitConfig is about a process that is not there yet.
type waitConfig struct{ on bool }

func (w *waitConfig) declare(f *pflag.FlagSet) {
	f.BoolVar(&w.on, "wait", false, "with --comm: wait for the next process that executes a program under that name, anywhere on the machine, and trace it from its first instruction on; --ready-file is created when it waits")
}

// check says why nothing can be waited for.
func (w *waitConfig) check(c *config) error {
	s := &c.selection
	switch {
	case !w.on:
		return nil
	case c.command != nil:
		return errors.New("--wait is for a process that somebody else starts: a command behind -- is traced from its start without it")
	case len(s.PIDs) > 0:
		return errors.New("--wait is for a process that is not there yet: leave -p out")
	case len(s.Comms) != 1 || len(s.Cgroups)+len(s.Users) > 0:
		return errors.New("--wait goes with one --comm NAME, and no other description of processes")
	case c.dotnet.on:
		return errors.New("--dotnet asks a running process: leave --wait out")
	case c.follow.on:
		return errors.New("--follow-forks follows processes that run, or a command behind --: leave --wait out")
	}
	return nil
}

// arrived is a process that was waited for.
type arrived struct{ *arrival.Arrival }

func (a arrived) GiveUp() error { return a.Release() }

// recordNext waits for a process and records it.
func recordNext(ctx context.Context, s cli.Streams, c *config, hurry <-chan struct{}) (err error) {
	options, err := c.options()
	if err != nil {
		return err
	}
	comm := c.selection.Comms[0]
	r := &recording{config: c, streams: s, options: options, hurry: hurry, status: status{w: s.Err, on: s.ErrTerminal && !c.quiet}}
	if err := tracer.CheckRights(); err != nil {
		return (&session{config: c}).explain(err)
	}
	a, err := arrival.Start(comm)
	if err != nil {
		return fmt.Errorf("wait for a process: %w", err)
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if !c.quiet {
		r.status.print("waiting for the next process named %s", printable.Name(comm))
	}
	if err := r.ready(ctx); err != nil {
		return err
	}
	pid, err := a.Await(ctx)
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("no process named %s was started: there is no trace", printable.Name(comm))
	case err != nil:
		return err
	}
	r.tellHeld(a, pid)
	r.pids, r.held = []int{pid}, arrived{a}
	if c.dryRun {
		return errors.Join(r.dryRun(), a.Release())
	}
	err = r.run(ctx)
	if errors.Is(err, launch.ErrEnded) {
		return fmt.Errorf("process %d has ended before its libraries were there: there is no trace", pid)
	}
	return err
}

// tellHeld says how the process came to be held, if anybody may want to know.
func (r *recording) tellHeld(a *arrival.Arrival, pid int) {
	waited, stopped := a.Waited()
	switch {
	case stopped && !r.config.quiet:
		r.status.print("process %d was stopped by a signal until it was held, %v after its exec: its parent may have seen that", pid, waited)
	case r.config.verbose > 0:
		r.status.print("process %d is held, %v after its exec", pid, waited)
	}
}

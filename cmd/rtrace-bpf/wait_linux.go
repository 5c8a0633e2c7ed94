package main

import (
	"context"
	"errors"
	"fmt"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/recording"
	"rtrace-bpf/tracer/arrival"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/launch"
)

// recordNext waits for a process and records it.
func recordNext(ctx context.Context, s cli.Streams, c *config, env settings) (err error) {
	r := newReporter(c, s, s.ErrTerminal)
	o, err := c.recording(s, r, env)
	if err != nil {
		return err
	}
	comm := c.target.selection.Comms[0]
	if err := host.CheckRights(); err != nil {
		return r.explain(err)
	}
	a, err := arrival.Start(comm)
	if err != nil {
		return fmt.Errorf("wait for a process: %w", err)
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	r.line.Note("waiting for the next process named %s", printable.Name(comm))
	if err := r.Ready(ctx); err != nil {
		return err
	}
	pid, err := a.Await(ctx)
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("no process named %s was started: there is no trace", printable.Name(comm))
	case err != nil:
		return err
	}
	r.arrived(a, pid)
	o.PIDs, o.Held = []int{pid}, recording.Arrived{Arrival: a}
	if c.limits.dryRun {
		return errors.Join(r.dryRun(o, s), a.Release())
	}
	err = r.record(ctx, o)
	if errors.Is(err, launch.ErrEnded) {
		return fmt.Errorf("process %d has ended before its libraries were mapped: there is no trace", pid)
	}
	return err
}

// arrived prints a note if the process was stopped by a signal, which its parent may have
// noticed, and otherwise with -v that it is held.
func (r *reporter) arrived(a *arrival.Arrival, pid int) {
	waited, stopped := a.Waited()
	if stopped {
		r.line.Note("process %d was stopped by a signal until it was held, %v after its exec: its parent may have noticed", pid, waited)
		return
	}
	r.line.Detail("process %d is held, %v after its exec", pid, waited)
}

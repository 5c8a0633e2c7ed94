package main

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	a, pid, err := r.next(ctx, c.target.selection.Comms[0], r.line.Note)
	if _, ok := errors.AsType[*notStarted](err); ok {
		return fmt.Errorf("%w: there is no trace", err)
	}
	if err != nil {
		return r.explain(err)
	}
	defer func() { err = errors.Join(err, a.Close()) }()
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

// notStarted is the error if no process of a name was started.
type notStarted struct{ comm string }

// Error returns the text of the error.
func (e *notStarted) Error() string {
	return fmt.Sprintf("no process named %s was started", printable.Name(e.comm))
}

// next waits for the next process of a name, which is held then. The ready file is created, and a
// line is printed with say, when it waits. The caller must close the arrival.
func (r *reporter) next(ctx context.Context, comm string, say func(format string, args ...any)) (a *arrival.Arrival, pid int, err error) {
	if err := host.CheckRights(); err != nil {
		return nil, 0, err
	}
	if a, err = arrival.Start(comm); err != nil {
		return nil, 0, fmt.Errorf("wait for a process: %w", err)
	}
	say("waiting for the next process named %s", printable.Name(comm))
	if err = r.Ready(ctx); err == nil {
		pid, err = a.Await(ctx)
	}
	if errors.Is(err, context.Canceled) {
		err = &notStarted{comm}
	}
	if err != nil {
		return nil, 0, errors.Join(err, a.Close())
	}
	r.arrived(a, pid)
	return a, pid, nil
}

// arrived prints a note if the process was stopped by a signal, which its parent may have
// noticed, and otherwise with -v that it is held.
func (r *reporter) arrived(a *arrival.Arrival, pid int) {
	waited, stopped := a.Waited()
	if stopped {
		r.line.Note("process %d was stopped by a signal until it was held, %v after its exec: its parent may have noticed", pid, waited.Round(10*time.Microsecond))
		return
	}
	r.line.Detail("process %d is held, %v after its exec", pid, waited.Round(10*time.Microsecond))
}

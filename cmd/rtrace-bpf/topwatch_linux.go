package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/recording"
	"rtrace-bpf/internal/recording/excerpt"
	"rtrace-bpf/internal/recording/watch"
	"rtrace-bpf/internal/topview"
	"rtrace-bpf/tracer/launch"
)

// watching is a recording that top shows.
type watching struct {
	*watch.View
	report  *topReporter
	traces  *excerpt.Excerpts
	written []string      // paths of all traces that were begun
	command *launched     // nil unless top has started a command
	ready   chan struct{} // closed when the probes are attached
	over    chan struct{} // closed when the recording has ended; err is set then
	err     error
	began   time.Time
}

// topReporter reports what happens during a recording that top shows.
type topReporter struct {
	*reporter
	of *watching
}

// Ready is called when the probes are attached.
func (r *topReporter) Ready(ctx context.Context) error {
	r.of.began = time.Now()
	close(r.of.ready)
	return r.reporter.Ready(ctx)
}

// start finds, awaits or starts what is traced, and starts the recording, which runs until ctx or
// the processes end. screen is set if the terminal belongs to the view.
func (t *topFlags) start(ctx context.Context, s cli.Streams, env settings, screen bool) (*watching, error) {
	limitGarbage()
	c := &t.config
	w := &watching{View: watch.NewView(), ready: make(chan struct{}), over: make(chan struct{})}
	w.report = &topReporter{newReporter(c, s, false), w}
	w.report.verb = "top"
	o, err := c.recording(s, w.report.reporter, env)
	if err != nil {
		return nil, err
	}
	w.traces = excerpt.New(excerpt.Options{Output: o.Output, Format: o.Format, Encoding: o.Encoding})
	o.Watch, o.Excerpts, o.Report = w.Watch, w.traces, w.report
	finish := func(err error) error { return err }
	switch {
	case c.command != nil:
		w.command, err = t.launch(&o, s, env, screen)
		finish = commandEnded
	case c.target.wait:
		finish, err = w.await(ctx, &o, c.target.selection.Comms[0])
	default:
		err = c.running(&o, name+" top")
	}
	if err == nil {
		w.report.pids = o.PIDs
		err = w.report.follow(&o)
	}
	if err != nil {
		return w, w.report.explain(err)
	}
	go func() {
		defer close(w.over)
		x := recording.New(o)
		err := x.Run(ctx, nil)
		w.err = w.report.explain(finish(errors.Join(err, w.traces.Err(), w.report.outcome(x.Result()))))
	}()
	return w, nil
}

// running selects running processes. verb is the command line that waits for one.
func (c *config) running(o *recording.Options, verb string) error {
	pids, err := c.selection(verb)
	if err != nil {
		return err
	}
	o.PIDs, o.Tracer.Shares = pids, len(pids)
	return checkShares(&o.Tracer, o.Tracer.Shares, "select fewer")
}

// await waits for the next process of a name. finish releases what is held for it, at the end of the
// recording with its error.
func (w *watching) await(ctx context.Context, o *recording.Options, comm string) (finish func(error) error, err error) {
	a, pid, err := w.report.next(ctx, comm, w.report.line.Print)
	if err != nil {
		return nil, err
	}
	o.PIDs, o.Held = []int{pid}, recording.Arrived{Arrival: a}
	return func(err error) error {
		err = errors.Join(err, a.Close())
		if errors.Is(err, launch.ErrEnded) {
			return fmt.Errorf("process %d has ended before its libraries were mapped: there is nothing to show", pid)
		}
		return err
	}, nil
}

// snapshot returns what a view shows of this moment.
func (w *watching) snapshot() *topview.Snapshot {
	s := w.Of(w.Snapshot(), time.Since(w.began))
	s.Traces = w.traces.Paths()
	return s
}

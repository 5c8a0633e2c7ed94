package main

import (
	"context"
	"errors"
	"time"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/recording"
	"rtrace-bpf/internal/recording/watch"
	"rtrace-bpf/internal/topview"
)

// watching is a recording that top shows.
type watching struct {
	*watch.View
	report *topReporter
	ready  chan struct{} // closed when the probes are attached
	over   chan struct{} // closed when the recording has ended; err is set then
	err    error
	began  time.Time
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

// start starts the recording, which runs until ctx or the processes end.
func (t *topFlags) start(ctx context.Context, s cli.Streams, env settings) (*watching, error) {
	limitGarbage()
	c := &t.config
	pids, err := c.selection()
	if err != nil {
		return nil, err
	}
	w := &watching{View: watch.NewView(), ready: make(chan struct{}), over: make(chan struct{})}
	w.report = &topReporter{newReporter(c, s, false), w}
	o, err := c.recording(s, w.report.reporter, env)
	if err != nil {
		return nil, err
	}
	o.PIDs, o.Tracer.Shares = pids, len(pids)
	o.Watch, o.Report = w.Watch, w.report
	if err := checkShares(&o.Tracer, o.Tracer.Shares, "select fewer"); err != nil {
		return nil, err
	}
	if err := w.report.follow(&o); err != nil {
		return nil, err
	}
	w.report.pids = pids
	go func() {
		defer close(w.over)
		x := recording.New(o)
		err := x.Run(ctx, nil)
		w.err = w.report.explain(errors.Join(err, w.report.outcome(x.Result())))
	}()
	return w, nil
}

// snapshot returns what a view shows of this moment.
func (w *watching) snapshot() *topview.Snapshot {
	return w.Of(w.Snapshot(), time.Since(w.began))
}

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/recording"
	"rtrace-bpf/internal/recording/watch"
	"rtrace-bpf/internal/topview"
)

// watching is a recording that top shows.
type watching struct {
	*watch.Watch
	report *topReporter
	ready  chan struct{} // closed when the probes are attached
	over   chan struct{} // closed when the recording has ended; err is set then
	err    error
	began  time.Time

	mu     sync.Mutex
	places map[int]topview.Place // by call site
}

var _ topview.Source = (*watching)(nil)

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
	c := &t.config
	pids, err := c.selection()
	if err != nil {
		return nil, err
	}
	w := &watching{Watch: watch.New(), ready: make(chan struct{}), over: make(chan struct{}), places: make(map[int]topview.Place)}
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
	s := w.Snapshot()
	out := &topview.Snapshot{State: s.State, Elapsed: time.Since(w.began), Suspects: s.Suspects, Judged: s.Judged}
	for i := range s.Processes {
		p := &s.Processes[i]
		x := topview.Process{
			PID: p.PID, Name: p.Name, RSS: p.Measure.RSS, Lost: p.Measure.Lost, Losses: p.Measure.Losses, Pauses: p.Measure.Pauses,
			Share: p.Measure.Cost.Share, Execs: p.Execs, Ended: p.Ended,
		}
		if p.Measure.Cost.Rate > 0 {
			x.Factor = p.Measure.Cost.Factor()
		}
		out.Processes = append(out.Processes, x)
	}
	return out
}

// Place returns the place of a call site, if it has been named.
func (w *watching) Place(site int) (topview.Place, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.places[site]
	return p, ok
}

// name names a call site, which may take seconds.
func (w *watching) name(site int) {
	p := w.Watch.Place(site)
	place := topview.Place{Function: p.Function, File: p.File, Line: p.Line, Library: p.Library, Callers: p.Callers, Stack: p.Stack, At: p.At}
	for _, f := range p.Frames {
		place.Frames = append(place.Frames, topview.Frame(f))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.places[site] = place
}

// Detail returns further figures of a call site.
func (w *watching) Detail(site int) aggregate.Detail { return w.Watch.Detail(site) }

package recording

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/recording/naming"
	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/internal/recording/watch"
	"rtrace-bpf/tracer"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/record"
)

// session is the recording of one process in one window: a tracer, and the trace that its
// records go to.
type session struct {
	of *Recording
	target
	probes    probes
	out       *output.Trace
	chain     chain
	extras    extras
	sums      sums
	costs     costs
	stats     record.Stats     // at the end of run
	estimates *estimate.Totals // of a recording in windows; nil for another
	replaced  atomic.Bool      // another session continues with its process, which has executed another program
	over      chan struct{}    // closed at its end

	mu      sync.Mutex // held while records are written
	endTime int64      // time of the last record
	ended   bool       // the record of the trace's end is among those that were written
}

// target is the process of a session.
type target struct {
	pid    int
	child  bool           // it was started by a process that is followed
	held   Held           // nil if it runs
	made   *plan.Plan     // what to probe; nil if that is to be found out
	root   *naming.Root   // the files that it sees
	frames *naming.Frames // names its frames
}

// newSession returns a session that has opened nothing but the process's files.
func (r *Recording) newSession(pid int) *session {
	x := &session{of: r, over: make(chan struct{})}
	if r.options.Tracer.Budget > 0 {
		x.estimates = &estimate.Totals{}
	}
	x.target = target{pid: pid, root: naming.OpenRoot(pid)}
	x.frames = naming.NewFrames(pid, x.root)
	x.probes = probes{line: r.options.Line, hurry: r.options.Hurry, alone: !r.several()}
	return x
}

// plan decides what to probe. A process that is held may have to run a little until its
// allocator is mapped.
func (t *target) plan(options plan.Options) (*plan.Plan, error) {
	switch {
	case t.made != nil:
		return t.made, nil
	case t.held == nil:
		return plan.New(options)
	}
	var why error
	for {
		there, err := t.held.Next()
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, why
		}
		plan, err := plan.New(options)
		if !errors.Is(err, host.ErrNoAllocator) && !errors.Is(err, host.ErrStripped) {
			return plan, err
		}
		why = err
	}
}

// attach opens the output and starts recording. After an error nothing is left.
func (x *session) attach(ctx context.Context, options plan.Options) error {
	plan, err := x.plan(options)
	if err != nil {
		return err
	}
	o := &x.of.options
	if o.Line.Verbose > 1 {
		err = o.Line.Write(plan.WriteText)
	}
	if err == nil {
		err = x.open(ctx)
	}
	if err != nil {
		return errors.Join(err, plan.Close())
	}
	x.openResident()
	if x.probes.tracer, err = tracer.Open(plan); err != nil {
		return errors.Join(err, x.discard())
	}
	x.openHeap()
	if x.chain.events != nil { // last, so that none of its events is older than the trace
		if err := x.chain.events.Begin(ctx); err != nil {
			return errors.Join(err, x.probes.tracer.Close(), x.discard())
		}
	}
	x.beginCosts()
	return nil
}

// run writes the trace until its end, that of ctx or that of until, which ends when ctx
// does, too. It returns what went wrong.
func (x *session) run(ctx, until context.Context) error {
	defer context.AfterFunc(until, x.probes.stop)()
	defer x.sums.close()
	err := x.copy()
	x.chain.stop()
	x.of.options.Line.Clear()
	if errors.Is(err, ErrHurried) {
		if x.chain.events != nil {
			err = errors.Join(err, x.chain.events.Abandon())
		}
		return errors.Join(err, x.dropLeaks(), x.finish()) // the kernel removes the probes
	}
	stats := x.probes.tracer.Stats()
	x.watch(&stats, true)
	x.of.relaxed()
	// The probes are off from here on. The files are completed before the probes are
	// removed, but not if that takes long: a call of the process costs something until then.
	var verdicts verdicts
	if !x.of.options.Tracer.NoLive {
		verdicts = x.sums.verdicts(x.pid, x.measure(&stats), x.endTime)
	}
	slow := len(verdicts.at.Suspects) > 0 || x.chain.delayed != nil || x.chain.functions != nil || x.extras.leaks != nil || x.extras.snapshots != nil
	if slow {
		err = errors.Join(err, x.probes.detach())
	}
	hurry := x.of.options.Hurry
	if ctx.Err() == nil { // no signal has ended the recording: the first one is a hurry
		hurry = ctx.Done()
	}
	x.endSnapshots(&stats, hurry)
	err = errors.Join(err, x.chain.end(hurry))
	if err == nil {
		err = x.writeLeaks()
	} else {
		err = errors.Join(err, x.dropLeaks())
	}
	err = errors.Join(err, x.finish())
	x.stats = x.probes.tracer.Stats()
	if x.replaced.Load() {
		x.stats.Unprobed, x.stats.WasUnprobed, x.stats.LeftBehind = false, false, false
	}
	x.measured(&x.stats, true)
	summary := x.summary()
	summary.Verdicts = verdicts.lines(hurry)
	summary.Suspects = len(verdicts.at.Suspects)
	x.of.options.Report.Ended(summary)
	if !slow {
		err = errors.Join(err, x.probes.detach())
	}
	return err
}

// name returns the name of the process.
func (x *session) name() string { return x.probes.tracer.Plan().ProcessName() }

// measured passes the state of the recording to what sums up its records. ended is set at
// the end.
func (x *session) measured(stats *record.Stats, ended bool) {
	if s := x.extras.snapshots; s != nil && !ended {
		s.Measured(x.measure(stats), false)
	}
	if w := x.of.options.Watch; w != nil {
		w.Measured(x.pid, x.measure(stats), ended)
	}
}

// measure returns the state of the recording.
func (x *session) measure(stats *record.Stats) watch.Measure {
	return watch.Measure{
		RSS: x.extras.resident.Bytes(), Calls: stats.Calls, Lost: stats.LostEvents(), Losses: Losses(stats),
		Pauses: stats.Lost[order.LossPaused], Cost: x.costs.last, Factor: x.costs.factor(),
	}
}

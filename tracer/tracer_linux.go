package tracer

import (
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/record"
)

// Tracer records the allocator calls of a running process. It is a
// trace.Reader whose times are CLOCK_MONOTONIC; ReadRecord waits for the next
// record and returns io.EOF after Stop or the end of the process, when
// everything up to that moment has been returned.
//
// One goroutine may read while others call Stop; Close comes last.
type Tracer struct {
	plan      *plan.Plan
	kernel    *kernel
	collector *collector
	stream    *record.Stream
	running   sync.WaitGroup
	ticker    *time.Ticker

	batch  *order.Batch // that the stream has
	ended  bool         // there are no more batches
	exited bool         // the process has ended
	over   bool         // the last record was returned
	err    error
}

// Open attaches to the process and starts recording. It takes plan over. The
// caller must read until io.EOF or an error, and Close.
func Open(p *plan.Plan) (*Tracer, error) {
	if len(p.Options.Modules) > 0 {
		p.Open = p.Target.Descriptors() // what is opened from now on is an event
	}
	k, err := attach(p)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	t := &Tracer{plan: p, kernel: k, ticker: time.NewTicker(plan.TickInterval)}
	t.collector, err = newCollector(k.sources, k.sideband, p.Target)
	if err != nil {
		return nil, errors.Join(err, k.Close(), p.Close())
	}
	if err := t.collector.watchKeeper(k.keeper.FD()); err != nil {
		return nil, errors.Join(err, t.collector.Close(), k.Close(), p.Close())
	}
	if limit := p.Options.Testing.DrainLimit; limit != 0 {
		t.collector.limit = limit
	}
	if p.Options.Idle != nil {
		t.collector.longest = pollShortest
	}
	t.collector.losses = k.losses
	t.collector.disable = k.disable
	t.collector.snapshot = p.Target.Mappings
	t.collector.follower = k.follower
	t.collector.Functions = k.Functions
	if k.Functions != nil {
		if err := k.Functions.follow(t.collector.watchKeeper); err != nil {
			return nil, errors.Join(err, t.collector.Close(), k.Close(), p.Close())
		}
	}
	t.collector.governor = newGovernor(p.Options.MaxRate, k, p)
	t.stream = record.NewStream(p, record.StreamLinks{
		Moved: func(number int, code process.Extent) { t.err = errors.Join(t.err, k.registry.Relocate(number, code)) },
		Ended: k.forget, Baseline: t.baseline, Installed: k.installed,
	})
	if k.follower != nil {
		k.follower.Start()
	}
	t.running.Go(t.collector.run)
	return t, nil
}

// baseline reads the threads and mappings of the process. What the kernel has recorded
// about them before is known by that, so it does not matter if some of it was dropped
// while the probes went in and nobody read. It reads once more if the process became
// another program meanwhile, or records were dropped again.
func (t *Tracer) baseline() (b record.Baseline) {
	const most = 5
	target, sideband, c := t.plan.Target, t.kernel.sideband, t.collector
	for range most {
		c.early = sideband.Poll(c.early)
		sideband.Settled()
		b.Time = order.Clock()
		b.Threads = target.Threads()
		b.Mappings, _ = target.Mappings() // none if it has ended; the trace will say so
		c.early = sideband.Poll(c.early)
		if !sideband.Dropped && !slices.ContainsFunc(c.early, func(x order.Side) bool {
			return x.Kind == order.SideExec && x.Time >= b.Time
		}) {
			break
		}
	}
	return b
}

// ReadRecord implements trace.Reader.
func (t *Tracer) ReadRecord(r *trace.Record) error {
	for {
		if t.stream.Next(r) {
			return nil
		}
		if t.ended {
			return t.finish(r)
		}
		t.receive()
	}
}

// receive takes the next batch from the collector.
func (t *Tracer) receive() {
	if t.batch != nil {
		select {
		case t.collector.free <- t.batch:
		default:
		}
		t.batch = nil
	}
	b := t.next()
	if b == nil {
		t.ended = true
		t.stream.End()
		return
	}
	t.batch = b
	if b.Err != nil {
		t.err = errors.Join(t.err, b.Err)
	}
	if b.Exited {
		t.exited = true
	}
	t.stream.Take(b)
}

// next waits for a batch and ticks meanwhile. It returns nil at the end.
func (t *Tracer) next() *order.Batch {
	if idle := t.plan.Options.Idle; idle != nil {
		select {
		case b := <-t.collector.out:
			return b
		default:
			idle()
		}
	}
	for {
		select {
		case b := <-t.collector.out:
			return b // nil when closed
		case <-t.ticker.C:
			if tick := t.plan.Options.Tick; tick != nil {
				tick()
			}
		}
	}
}

// finish returns the last record once and then the end.
func (t *Tracer) finish(r *trace.Record) error {
	switch {
	case t.err != nil:
		return t.err
	case t.exited:
		t.exited = false
		pid := int32(t.plan.Target.PID)
		*r = trace.Record{Kind: trace.KindExit, Time: int64(order.Clock()), PID: pid, TID: pid, Exit: trace.Exit{Process: true}}
		return nil
	case !t.over:
		t.over = true
		*r = trace.Record{Kind: trace.KindEnd, Time: int64(order.Clock()), PID: int32(t.plan.Target.PID)}
		return nil
	}
	return io.EOF
}

// Stop ends the recording now. ReadRecord returns what happened before and
// then io.EOF. It may be called from any goroutine, any number of times.
func (t *Tracer) Stop() {
	// At once, since the collector may be waiting for whoever reads. It does the
	// same and tells what goes wrong.
	_ = t.kernel.disable()
	t.collector.stop()
}

// Stats returns what ReadRecord has passed on so far. It must not be called
// while ReadRecord runs.
func (t *Tracer) Stats() record.Stats {
	return t.stream.Summary()
}

// LiveSites returns the n stacks that hold most live bytes, the largest first. What is
// unknown is not live. It must not be called while ReadRecord runs.
func (t *Tracer) LiveSites(n int) []record.LiveSite { return t.stream.LiveSites(n) }

// LiveBytes returns the bytes of the blocks that are live after the record that
// ReadRecord returned last, without those that are unknown; 0 if live blocks are not
// tracked. It must not be called while ReadRecord runs.
func (t *Tracer) LiveBytes() uint64 { return t.stream.LiveBytes() }

// Plan returns what was attached.
func (t *Tracer) Plan() *plan.Plan { return t.plan }

// Close stops recording if that has not happened, removes the probes and frees
// everything. After it, nothing of the tracer is left in the kernel.
func (t *Tracer) Close() error { return t.close(false) }

// Leave is Close for a program that ends then. It does not wait for the kernel to forget
// the probes of a process that has ended, where they are no more: the keeper does, which
// takes a tenth of a second, or seconds where each probe is a perf event.
func (t *Tracer) Leave() error {
	// The first process of a namespace takes all others with it, the keeper as well.
	return t.close(os.Getpid() != 1)
}

func (t *Tracer) close(leave bool) error {
	t.Stop()
	t.kernel.keeper.Wake()      // the governor may be waiting for it
	for range t.collector.out { // let the collector end
	}
	t.running.Wait()
	if g := t.collector.governor; g != nil {
		g.Close()
	}
	if t.kernel.Functions != nil {
		t.kernel.Functions.stop()
	}
	t.ticker.Stop()
	var err error
	if leave && t.collector.exited {
		err = t.kernel.leave()
	}
	return errors.Join(err, t.collector.Close(), t.kernel.Close(), t.plan.Close())
}

package tracer

import (
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/activity"
	"rtrace-bpf/tracer/functions"
)

// Tracer records the allocator calls of a running process. It is a
// trace.Reader whose times are CLOCK_MONOTONIC; ReadRecord waits for the next
// record and returns io.EOF after Stop or the end of the process, when
// everything up to that moment has been returned.
//
// One goroutine may read while others call Stop; Close comes last.
type Tracer struct {
	plan      *Plan
	kernel    *kernel
	collector *collector
	stream    stream
	running   sync.WaitGroup
	ticker    *time.Ticker

	batch   *batch
	at      int     // next event of batch
	ready   []event // decided by stream.moves
	readyAt int
	ended   bool
	exited  bool // the process has ended
	over    bool // the last record was returned
	err     error
}

// Open attaches to the process and starts recording. It takes plan over. The
// caller must read until io.EOF or an error, and Close.
func Open(p *Plan) (*Tracer, error) {
	if len(p.options.Modules) > 0 {
		p.open = p.target.descriptors() // what is opened from now on is an event
	}
	k, err := attach(p)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	t := &Tracer{plan: p, kernel: k, ticker: time.NewTicker(tickInterval)}
	t.collector, err = newCollector(k.sources, k.sideband, p.target)
	if err != nil {
		return nil, errors.Join(err, k.Close(), p.Close())
	}
	if err := t.collector.watchKeeper(k.keeper.FD()); err != nil {
		return nil, errors.Join(err, t.collector.Close(), k.Close(), p.Close())
	}
	if limit := p.options.testing.drainLimit; limit != 0 {
		t.collector.limit = limit
	}
	if p.options.Idle != nil {
		t.collector.longest = pollShortest
	}
	t.collector.losses = k.losses
	t.collector.disable = k.disable
	t.collector.snapshot = p.target.mappings
	t.collector.follower = k.follower
	t.collector.named = k.named
	if k.named != nil {
		if err := k.named.follow(t.collector.watchKeeper); err != nil {
			return nil, errors.Join(err, t.collector.Close(), k.Close(), p.Close())
		}
	}
	t.collector.governor = newGovernor(p.options.MaxRate, k, p)
	t.start()
	if k.follower != nil {
		k.follower.start()
	}
	t.running.Go(t.collector.run)
	return t, nil
}

// start prepares the stream and its first records.
func (t *Tracer) start() {
	target, options := t.plan.target, t.plan.options
	s := &t.stream
	*s = stream{
		functions: t.plan.functionNames(), args: t.plan.functionArguments(), minSize: options.MinSize,
		stacks: map[uint64]*stackDef{}, checked: map[uint64]*stackDef{}, moves: newMoves(), early: map[uint64]uint64{},
		sides: map[uint64]side{}, raws: map[uint64]*rawStack{},
		activities: map[uint64]activity.Event{}, describeActivity: options.Activity.Record, pid: int32(target.pid),
		called: map[uint64]functions.Event{}, calls: functions.NewCalls(os.Getpagesize()), describeCall: options.Functions.Record,
		things: newThings(t.plan, s.textLength), backtraceAll: options.BacktraceAll, noMemory: options.NoMemory,
		stats: Stats{Broken: map[string]uint64{}},
	}
	if f := t.kernel.follower; f != nil {
		s.coverage.tables = true
		s.coverage.installed(f.space.mappings(), 0)
	}
	s.copies = newCopies(target, &options, &s.mappings)
	if options.VerifyUnwind > 0 {
		s.verifier = &verifier{copies: s.copies, log: options.warnf}
	}
	if !options.NoLive {
		s.blocks = live.NewBlocks()
	}
	s.mappings = mappings{modules: map[string]bool{}, file: target.fileInfo, emit: func(r trace.Record) {
		r.PID = int32(target.pid)
		s.emit(r)
	}}
	s.mappings.moved = t.relocate
	s.ended = t.kernel.forget
	now, wall := clock(), time.Now()
	head := trace.Record{Time: int64(now), PID: int32(target.pid)}
	add := func(kind trace.Kind, fill func(r *trace.Record)) {
		r := head
		r.Kind = kind
		fill(&r)
		s.emit(r)
	}
	add(trace.KindHeader, func(r *trace.Record) {
		r.Header = trace.Header{
			Arch: target.machine.uname(), PointerSize: int(target.machine.word), Clock: trace.ClockMonotonic,
			WallTime: wall.UnixNano(), ClockTime: int64(now), Origin: options.Origin, Ends: true,
		}
	})
	add(trace.KindProcess, func(r *trace.Record) {
		r.Process = target.origin()
		r.Process.WallTime, r.Process.Depth = wall.UnixNano(), options.Depth
	})
	add(trace.KindTracerModule, func(r *trace.Record) {
		r.TracerModule = trace.TracerModule{ID: 0, Major: 1, Name: "main"}
	})
	modules := []string{"memory"}
	if options.NoMemory {
		modules = nil
	}
	for _, m := range options.Modules {
		modules = append(modules, m.Name)
	}
	for i, name := range modules {
		add(trace.KindTracerModule, func(r *trace.Record) {
			r.TracerModule = trace.TracerModule{ID: 1 << i, Major: 1, Name: name}
		})
	}
	if !options.NoMemory {
		add(trace.KindResource, func(r *trace.Record) {
			r.Resource = trace.Resource{ID: MemoryResource, Type: "memory", Desc: "memory allocation in bytes"}
		})
	}
	if s.things.recorder != nil {
		for _, resource := range s.things.recorder.Resources() {
			add(trace.KindResource, func(r *trace.Record) { r.Resource = resource })
		}
	}
	s.warn = options.warnf
	threads, all := t.baseline()
	s.roster = newRoster(threads, s.baseline)
	for _, thread := range threads {
		add(trace.KindThread, func(r *trace.Record) {
			r.TID, r.Thread.Name = int32(thread.TID), thread.Name
		})
	}
	s.stats.Unprobed = len(all) > 0 // until the library is found: it may be another program since the plan was made
	for _, m := range all {
		m.seen = s.baseline
		s.mappings.add(m, now)
	}
	if options.HeapGrowth {
		s.heap = readHeap(target)
	}
	for _, region := range s.heap.regions {
		add(trace.KindHeapGrow, func(r *trace.Record) {
			r.HeapGrow = trace.HeapGrow{Address: region.start, Size: region.end - region.start}
		})
	}
}

// baseline reads the threads and mappings of the process. What the kernel has recorded
// about them before is known by that, so it does not matter if some of it was dropped
// while the probes went in and nobody read. It reads once more if the process became
// another program meanwhile, or records were dropped again.
func (t *Tracer) baseline() (threads []proc.Thread, all []mapping) {
	const most = 5
	target, sideband, c := t.plan.target, t.kernel.sideband, t.collector
	for range most {
		c.early = sideband.poll(c.early)
		sideband.settled()
		t.stream.baseline = clock()
		threads = target.threads()
		all, _ = target.mappings() // none if it has ended; the trace will say so
		c.early = sideband.poll(c.early)
		if !sideband.dropped && !slices.ContainsFunc(c.early, func(x side) bool {
			return x.kind == sideExec && x.time >= t.stream.baseline
		}) {
			break
		}
	}
	return threads, all
}

// ReadRecord implements trace.Reader.
func (t *Tracer) ReadRecord(r *trace.Record) error {
	for {
		if t.stream.pop(r) {
			return nil
		}
		if t.readyAt < len(t.ready) {
			e := &t.ready[t.readyAt]
			t.readyAt++
			if t.stream.record(e, r) {
				return nil
			}
			continue
		}
		if t.batch != nil && t.at < len(t.batch.events) {
			e := &t.batch.events[t.at]
			t.at++
			if !t.stream.moves.pass(e) {
				t.ready, t.readyAt = t.stream.moves.add(e), 0
			} else if t.stream.record(e, r) {
				return nil
			}
			continue
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
		t.ready, t.readyAt = t.stream.moves.flush(), 0
		t.stream.flushThings()
		if s := &t.stream; s.stats.Unprobed && t.plan.target.loading(s.mappings.current) {
			s.stats.Unprobed = false // it has made no calls yet
		}
		return
	}
	t.batch, t.at = b, 0
	if b.err != nil {
		t.err = errors.Join(t.err, b.err)
	}
	if b.exited {
		t.exited = true
	}
	for i := range b.stacks {
		def := b.stacks[i]
		t.stream.stacks[def.hash] = &def
	}
	for i := range b.raws {
		raw := b.raws[i]
		t.stream.raws[raw.id] = &raw
	}
	for i := range b.acts {
		t.stream.activities[b.acts[i].id] = b.acts[i].Event
	}
	for i := range b.calls {
		t.stream.called[b.calls[i].id] = b.calls[i].Event
	}
	for _, x := range b.sides {
		t.stream.sides[t.stream.sideCount] = x
		t.stream.sideCount++
	}
}

// next waits for a batch and ticks meanwhile. It returns nil at the end.
func (t *Tracer) next() *batch {
	if idle := t.plan.options.Idle; idle != nil {
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
			if tick := t.plan.options.Tick; tick != nil {
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
		pid := int32(t.plan.target.pid)
		*r = trace.Record{Kind: trace.KindExit, Time: int64(clock()), PID: pid, TID: pid, Exit: trace.Exit{Process: true}}
		return nil
	case !t.over:
		t.over = true
		*r = trace.Record{Kind: trace.KindEnd, Time: int64(clock()), PID: int32(t.plan.target.pid)}
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
func (t *Tracer) Stats() Stats {
	s := t.stream.stats
	s.Broken = maps.Clone(s.Broken)
	if t.stream.noMemory {
		s.Unprobed, s.WasUnprobed = false, false // no allocator is
	}
	s.Things = slices.Clone(t.stream.things.counts)
	s.DistinctStacks = len(t.stream.checked)
	if v := t.stream.verifier; v != nil {
		s.Verified, s.VerifyDiffers = v.checked, v.differs
	}
	if t.stream.blocks != nil {
		s.LiveBlocks, s.LiveBytes = t.stream.blocks.Live()
		s.UnknownBlocks, s.UnknownBytes = t.stream.blocks.Unknown()
	}
	return s
}

// Plan returns what was attached.
func (t *Tracer) Plan() *Plan { return t.plan }

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
	if t.kernel.named != nil {
		t.kernel.named.stop()
	}
	t.ticker.Stop()
	var err error
	if leave && t.collector.exited {
		err = t.kernel.leave()
	}
	return errors.Join(err, t.collector.Close(), t.kernel.Close(), t.plan.Close())
}

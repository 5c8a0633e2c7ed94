// Package aggregate sums up a trace by call site while it is recorded or read:
// what is live, allocated, freed and at the peak, in all and in the last
// interval, with sizes, lifetimes and threads. Live views, snapshots, reports
// and commands that read files use the same Engine, so the same records give
// the same figures.
//
// A call site is a process, a type of resource and a stack, or without a stack
// the caller. [live.Blocks] defines which blocks are live or unknown,
// [usage.Ledger] adds them up, and [live.Temporary] defines which are temporary.
// Times are nanoseconds since the first call, unless stated otherwise; they come
// from the records, so the results do not depend on when or how often they are
// read.
//
// Memory grows with the blocks that are live at a time and the distinct stacks,
// not with the number of calls. A block takes about 64 bytes.
package aggregate

import (
	"rtrace-bpf/internal/analysis/loss"
	"rtrace-bpf/internal/analysis/rss"
	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Engine processes the records of a trace one by one. It is not safe for
// concurrent use.
type Engine struct {
	clock     timeline.Clock
	blocks    *live.Blocks // Value is the number of the life
	lives     live.Values[life]
	temporary live.Temporary
	sampled   live.IDs
	resources resources
	sites     callSites
	facts     facts
	interval  interval
	keeper    Keeper // nil for none
}

// facts is what else is known of the trace.
type facts struct {
	traces int // headers: a file may contain several traces
	lost   loss.Table
	gap    int64 // when the last gap in the recording ended
	rss    rss.Account
}

// interval is the last interval.
type interval struct {
	end, length int64
}

// life holds the facts about a live block that are not in its entry in the
// table. The zero life is one that is not in use.
type life struct {
	time   int64  // when it was allocated, or passed to realloc
	source uint32 // 1 + the number of the source, and unknownLife
	nth    uint32 // number in live.Temporary
}

// unknownLife marks the life of an unknown block.
const unknownLife = 1 << 31

// New returns an empty Engine.
func New() *Engine {
	return &Engine{blocks: live.NewBlocks(), sites: newCallSites()}
}

// Add processes a record. It keeps no reference to the contents of r. If the
// file has several traces, a record without a process counts as one of a process
// whose number stands for its trace.
func (e *Engine) Add(r *trace.Record) {
	if r.Kind == trace.KindHeader {
		e.facts.traces++
		e.clock.Day = r.Header.Clock == trace.ClockDay
	}
	if r.PID == 0 && e.facts.traces > 1 {
		defer func() { r.PID = 0 }()
		r.PID = 1 - int32(min(e.facts.traces, 1<<30))
	}
	if r.Kind == trace.KindCall {
		e.call(r)
		return
	}
	e.facts.rss.Add(r)
	switch r.Kind {
	case trace.KindResource:
		e.blocks.Declare(&r.Resource)
		e.sampled.Set(r.Resource.ID, r.Resource.Sampled)
		e.resources.declare(&r.Resource)
	case trace.KindExec:
		e.exec(r.PID)
	case trace.KindLost:
		e.blocks.Lost(r, e.unknown)
		if r.Lost.Gap() {
			e.facts.gap = e.clock.Since(r.Time)
		}
		e.facts.lost.Add(r)
	case trace.KindMapping:
		e.sites.mapped(r)
	}
}

func (e *Engine) call(r *trace.Record) {
	c := &r.Call
	now := e.clock.Elapsed(r.Time)
	n := e.resources.of(c.Resource)
	if n < 0 {
		e.resources.others++
		return
	}
	of := e.resources.all[n]
	of.Calls.Add(c)
	switch c.Op {
	case trace.OpFree:
		e.free(of, r, c.ID, now)
	case trace.OpMove:
		if c.OldID != 0 {
			e.free(of, r, c.OldID, now)
		}
		e.alloc(of, r, now)
	case trace.OpAlloc:
		e.alloc(of, r, now)
	}
}

func (e *Engine) alloc(of *resource, r *trace.Record, now int64) {
	c := &r.Call
	if e.blocks.Retain(r.PID, c.Resource, c.ID) {
		return
	}
	p := e.sites.processes.Of(r.PID)
	n := e.sites.source(e.sites.of(p, of, r, now), r)
	if e.sampled.Has(c.Resource) {
		p.keep(n, c.Size)
		if e.keeper != nil {
			e.keeper.Sampled(r)
		}
	} else {
		e.begin(of, r, n, now)
	}
	x := e.sites.sources.At(uint64(n))
	s := e.sites.at(x.site)
	s.last = now
	if !e.sampled.Has(c.Resource) {
		s.history.Began(now, c.Size)
	}
	x.allocated.AddBlock(c.Size)
	x.live.AddBlock(c.Size)
	bin := s.sizes.at(step(c.Size))
	bin.allocated.AddBlock(c.Size)
	bin.live.AddBlock(c.Size)
	of.sums.Began(int(s.group), c.Size)
}

// begin begins a block of a source, which may end another one at its address.
func (e *Engine) begin(of *resource, r *trace.Record, source uint32, now int64) {
	c := &r.Call
	nth := e.temporary.Allocated(r, uint32(of.number))
	block := e.lives.Add(life{time: now, source: source + 1, nth: nth})
	if e.keeper != nil {
		e.keeper.Began(block, int(e.sites.sources.At(uint64(source)).site), r)
	}
	old, fate := e.blocks.Insert(r.PID, c.Resource, c.ID, c.Size, block)
	if fate == live.Absent {
		return
	}
	l := e.take(old.Value, nil)
	s := e.end(&l, old.Size, fate, now)
	s.replaced.AddBlock(old.Size)
	if fate == live.Known {
		of.Replaced.AddBlock(old.Size)
	}
}

// free processes a free.
func (e *Engine) free(of *resource, r *trace.Record, id uint64, now int64) {
	before := e.blocks.Unmatched()
	b, fate := e.blocks.Free(r.PID, r.Call.Resource, id)
	if e.blocks.Unmatched() > before {
		of.Unmatched++
		of.earlier.Began(now, 0)
	}
	if fate == live.Absent {
		return
	}
	by := r
	if fate != live.Known {
		by = nil // the block that was freed may be another one
	}
	l := e.take(b.Value, by)
	s := e.end(&l, b.Size, fate, now)
	s.freed.AddBlock(b.Size)
	of.Freed.AddBlock(b.Size)
	if by == nil {
		return
	}
	if e.temporary.Freed(r, uint32(of.number), l.nth) {
		of.sums.Temporary(int(s.group), b.Size)
	}
	of.lives.Ended(now - l.time)
	*s.lifetimes.at(lifetimeStep(now - l.time))++
}

// end subtracts an ended block from the sums and returns its site.
func (e *Engine) end(l *life, size uint64, fate live.Fate, now int64) *site {
	x := e.sites.sources.At(uint64(l.number()))
	s := e.sites.at(x.site)
	if fate == live.Known {
		x.live.SubBlock(size)
		s.history.Ended(now, l.time, size)
	}
	s.sizes.at(step(size)).live.SubBlock(size)
	e.resources.all[s.resource].sums.Ended(int(s.group), size, fate)
	return s
}

// number returns the number of the source.
func (l *life) number() uint32 { return l.source&^unknownLife - 1 }

// unknown counts a block that became unknown.
func (e *Engine) unknown(b live.Entry) {
	l := e.lives.At(b.Value)
	l.source |= unknownLife
	x := e.sites.sources.At(uint64(l.number()))
	x.live.SubBlock(b.Size)
	s := e.sites.at(x.site)
	s.history.Ended(e.clock.Last(), l.time, b.Size)
	e.resources.all[s.resource].sums.Unknown(int(s.group), b.Size)
}

// exec ends all blocks of a process. Later calls belong to other sites, because
// the addresses of their stacks are those of another program.
func (e *Engine) exec(pid int32) {
	for _, blocks := range e.blocks.Exec(pid) {
		for b, fate := range blocks {
			l := e.take(b.Value, nil)
			e.end(&l, b.Size, fate, e.clock.Last())
		}
	}
	e.sites.mappings.Drop(pid)
	for _, p := range e.sites.processes.Drop(pid) {
		for k, a := range p.sampled {
			x := e.sites.sources.At(uint64(k.source))
			s := e.sites.at(x.site)
			x.live.Sub(a)
			s.sizes.at(k.step).live.Sub(a)
			e.resources.all[s.resource].sums.Dropped(int(s.group), a)
		}
	}
}

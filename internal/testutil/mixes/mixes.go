// Package mixes makes traces of simulated programs, half of which leak, for tests
// of what finds leaks. A trace is determined by its seed. Each program has a busy
// allocator, whose blocks live for a short time, and one family of other users of
// memory: caches, pools, sessions and the like. In half of the traces recording
// starts while the program is running, so blocks from before are freed in it.
//
// What does not come to rest within 60 % of the recording is left out: a cache
// that is still filling up at the end looks like a leak.
package mixes

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"rtrace-bpf/trace"
)

// Families are the names of what goes on alongside the busy allocator.
var Families = []string{
	"busy",     // nothing else
	"lru",      // caches that evict the oldest entry for each new one when they are full
	"cache",    // caches that fill up more and more slowly, and stay
	"pool",     // pools that grow and shrink
	"arenas",   // arenas that are filled, kept and freed as a whole
	"sessions", // sessions with several blocks each, of very different lengths
	"start-up", // tables that are built at the start and stay
	"bursts",   // many blocks at a time, freed a little later
	"sawtooth", // buffers that grow until they are flushed
	"all",      // one of each
}

// Leak is what a program leaks.
type Leak struct {
	// Kind is "steady", "partial" (a busy call site that frees most of its
	// blocks), "late" (starts within the recording) or "clumps" (several blocks
	// at a time).
	Kind   string
	Site   uint64  // innermost frame of its stack
	Share  float64 // leaked blocks, as a share of the busy allocator's
	Blocks int     // leaked in the recording
	Start  time.Duration
}

// Mix is the trace of one program.
type Mix struct {
	Seed     uint64
	Family   string
	Duration time.Duration
	Attached bool  // the program had been running before the recording
	Leak     *Leak // nil if it does not leak
	Calls    int   // in the recording
}

// event is a call: the allocation of a block, or its free.
type event struct {
	time  float64 // seconds; the recording starts at 0
	block int32
	free  bool
}

// block is a block of the program.
type block struct {
	site   int32
	thread int32 // 0: that of the site
	size   uint32
	id     uint64
}

// New makes the mix of a seed. The family is that of seed modulo 10, and seeds
// with an even tens digit leak.
func New(seed uint64) (*Mix, func(add func(*trace.Record))) {
	rnd := rand.New(rand.NewPCG(seed, 0x6d69786573))
	g := &generator{rnd: rnd}
	m := &Mix{Seed: seed, Family: Families[seed%10], Attached: rnd.IntN(2) == 0}
	g.end = math.Round(g.between(60, 3600))
	m.Duration = time.Duration(g.end) * time.Second
	if m.Attached {
		g.begin = -g.end * (0.2 + rnd.Float64())
	}
	blocks := g.between(20_000, 60_000)
	if seed/10%2 == 0 {
		m.Leak = g.leak(blocks)
	}
	g.busy(blocks)
	if rnd.IntN(2) == 0 && m.Family != "start-up" {
		g.tables()
	}
	if m.Family == "all" {
		for _, name := range Families {
			g.family(name)
		}
	} else {
		for range 1 + rnd.IntN(3) {
			g.family(m.Family)
		}
	}
	g.sort()
	g.addresses()
	m.Calls = g.calls()
	if m.Leak != nil {
		m.Leak.Blocks = g.leaks()
	}
	return m, g.records
}

// sort sorts the calls by time.
func (g *generator) sort() {
	slices.SortStableFunc(g.events, func(a, b event) int {
		switch {
		case a.time < b.time:
			return -1
		case a.time > b.time:
			return 1
		}
		return 0
	})
}

// calls returns the number of calls in the recording.
func (g *generator) calls() (n int) {
	for _, e := range g.events {
		if e.time >= 0 && e.time <= g.end {
			n++
		}
	}
	return n
}

// leaks returns the number of blocks that are leaked in the recording.
func (g *generator) leaks() (n int) {
	for _, e := range g.events {
		if e.time >= 0 && e.time <= g.end && !e.free && g.leaked[e.block] {
			n++
		}
	}
	return n
}

// addresses assigns addresses to blocks; those of freed blocks are used again.
func (g *generator) addresses() {
	var vacant []uint64
	next := uint64(0x7f0000000000)
	for _, e := range g.events {
		b := &g.blocks[e.block]
		switch {
		case e.free:
			vacant = append(vacant, b.id)
		case len(vacant) > 8: // an allocator does not hand out the last one at once
			at := len(vacant) - 1 - g.rnd.IntN(8)
			b.id = vacant[at]
			vacant = slices.Delete(vacant, at, at+1)
		default:
			b.id = next
			next += 64
		}
	}
}

// records passes the records of the recording to add.
func (g *generator) records(add func(*trace.Record)) {
	const start = int64(1e12) // of the recording, on the trace's clock
	add(&trace.Record{Kind: trace.KindHeader, Header: trace.Header{Clock: trace.ClockMonotonic, PointerSize: 8}})
	add(&trace.Record{Kind: trace.KindProcess, PID: 1, Process: trace.Process{Name: "mix"}})
	add(&trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory"}})
	var r trace.Record
	for _, e := range g.events {
		if e.time < 0 || e.time > g.end {
			continue
		}
		b := &g.blocks[e.block]
		seq := r.Call.Seq + 1
		if b.thread == 0 {
			b.thread = 1 + b.site%4
		}
		r = trace.Record{Kind: trace.KindCall, PID: 1, TID: b.thread, Time: start + int64(e.time*1e9)}
		r.Call = trace.Call{Seq: seq, Op: trace.OpFree, Function: "free", Resource: 1, ID: b.id}
		if !e.free {
			r.Call.Op, r.Call.Function, r.Call.Size = trace.OpAlloc, "malloc", uint64(b.size)
			r.Call.Stack = trace.Stack{Frames: g.sites[b.site].stack, End: trace.StackComplete}
		}
		add(&r)
	}
}

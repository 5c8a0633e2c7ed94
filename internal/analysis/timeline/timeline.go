// Package timeline computes the amount of live memory over the course of a
// trace. It keeps a bounded number of points, each of which summarizes an
// interval with its minima and maxima, so that no peak is lost however long the
// trace is. It also computes totals, lifetimes, and sums by thread and
// function.
//
// The axis is the number of the event (see package blocks), or the time if the
// trace has times. Intervals are of equal width. When there are too many
// points, neighbours are joined and the width doubles.
package timeline

import (
	"rtrace-bpf/internal/analysis/blocks"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Axis is the quantity that the points are spread over.
type Axis uint8

// The axes.
const (
	ByEvent       Axis = iota // the number of the call, from 1
	ByTime                    // nanoseconds since the first call
	ByTimeIfKnown             // ByTime if the trace has times, else ByEvent
)

// Options configure a Timeline. The zero value follows memory by event.
type Options struct {
	Axis Axis
	// Points is the largest number of points at the end; 0 means 512.
	Points int
	// Resource is the type of the resource to follow; empty means memory.
	Resource string
	// Threads and Functions enable the sums by thread and by function.
	Threads, Functions bool
	// Framer finds the functions of calls. The zero value uses the names in the
	// trace.
	Framer sites.Framer
}

// Timeline processes the records of a trace. Its memory is bounded by the
// number of points, the blocks that are live at a time, and the threads and
// functions if these are enabled.
type Timeline struct {
	limit   int // points asked for
	blocks  *blocks.Follower
	lives   live.Values[life]
	courses []course
	now     []*Point // of the present call, one in each course
	clock   Clock
	header  trace.Header // only its times
	total   Totals
	threads *groups
	callers *groups
	byAge   [bins]Bin
	byTime  [bins]Bin
}

// New returns an empty Timeline.
func New(o Options) *Timeline {
	if o.Points <= 0 {
		o.Points = 512
	}
	if o.Resource == "" {
		o.Resource = blocks.Memory
	}
	t := &Timeline{limit: o.Points, blocks: blocks.New(o.Resource), courses: newCourses(o.Axis, o.Points)}
	if o.Threads {
		t.threads = newGroups(o.Framer)
	}
	if o.Functions {
		t.callers = newGroups(o.Framer)
	}
	return t
}

// Add processes a record. It keeps no reference to the contents of r.
func (t *Timeline) Add(r *trace.Record) {
	switch r.Kind {
	case trace.KindCall:
		t.call(r)
	case trace.KindHeader:
		h := &r.Header
		t.clock.Day = h.Clock == trace.ClockDay
		t.header = trace.Header{Clock: h.Clock, WallTime: h.WallTime, ClockTime: h.ClockTime}
	case trace.KindHeapGrow:
		t.grow(&r.HeapGrow)
	case trace.KindExec:
		t.exec(r)
	default:
		t.blocks.Add(r)
	}
}

func (t *Timeline) grow(g *trace.HeapGrow) {
	if g.Internal {
		t.total.Internal.AddBlock(g.Size)
		return
	}
	t.total.Reserved.AddBlock(g.Size)
	if t.blocks.Event() > 0 {
		for i := range t.courses {
			t.courses[i].last().Reserved = t.total.Reserved.Bytes
		}
	}
}

// exec ends all blocks between two events. They do not count as freed.
func (t *Timeline) exec(r *trace.Record) {
	for e := range t.blocks.All() {
		t.leave(e.Value, e.Size, t.blocks.Event()+1)
	}
	t.blocks.Add(r)
	t.lives = live.Values[life]{}
}

func (t *Timeline) call(r *trace.Record) {
	s := t.blocks.Add(r)
	event := t.blocks.Event()
	now := t.clock.Elapsed(r.Time)
	t.total.Events = event
	t.total.Duration = max(t.total.Duration, now)
	if t.total.Began == 0 && t.clock.Begun() {
		t.total.Began = wallTime(&t.header, r.Time)
	}
	t.now = t.now[:0]
	for i := range t.courses {
		t.now = append(t.now, t.courses[i].call(event, now))
	}
	life := life{event: event, time: now}
	if s.Ended {
		old := *t.lives.At(s.Old.Value)
		t.end(&s.Old, event, now)
		if r.Call.Op == trace.OpMove {
			life.event, life.time = old.event, old.time // realloc does not restart it
		}
	}
	if s.Begins {
		t.begin(r, life, event, now)
	}
	t.level(event)
}

// end counts a block that ended.
func (t *Timeline) end(e *live.Entry, event uint64, now int64) {
	l := t.lives.At(e.Value)
	for _, p := range t.now {
		p.Freed.AddBlock(e.Size)
	}
	t.total.Freed.AddBlock(e.Size)
	count(&t.byAge, event-l.event, e.Size)
	count(&t.byTime, uint64(max(0, now-l.time)), e.Size)
	t.leave(e.Value, e.Size, event)
	t.lives.Take(e.Value)
}

// leave subtracts a block from its groups.
func (t *Timeline) leave(value, size, event uint64) {
	l := t.lives.At(value)
	if t.threads != nil {
		t.threads.leave(l.thread, size, event, &t.total)
	}
	if t.callers != nil {
		t.callers.leave(l.caller, size, event, &t.total)
	}
}

// begin counts a block that began.
func (t *Timeline) begin(r *trace.Record, l life, event uint64, now int64) {
	c := &r.Call
	if t.threads != nil {
		l.thread = t.threads.thread(r)
	}
	if t.callers != nil {
		l.caller = t.callers.caller(r)
	}
	old, replaced := t.blocks.Begin(c, t.lives.Add(l))
	if replaced {
		t.end(&old, event, now)
	}
	if t.threads != nil {
		t.threads.join(l.thread, c.Size, event, &t.total)
	}
	if t.callers != nil {
		t.callers.join(l.caller, c.Size, event, &t.total)
	}
	for _, p := range t.now {
		p.Allocated.AddBlock(c.Size)
	}
	t.total.Allocated.AddBlock(c.Size)
	t.total.size(c.Size)
}

// level records the live amount after an event.
func (t *Timeline) level(event uint64) {
	n, bytes := t.blocks.Live()
	for _, p := range t.now {
		p.Blocks.add(n, p.Events == 1)
		p.Bytes.add(bytes, p.Events == 1)
		p.Reserved = t.total.Reserved.Bytes
	}
	t.total.peak(n, bytes, event)
}

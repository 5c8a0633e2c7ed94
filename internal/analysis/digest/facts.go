package digest

import (
	"math/bits"
	"strings"

	"rtrace-bpf/internal/analysis/loss"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Facts describes how a trace was recorded and what is missing from it.
type Facts struct {
	Header    trace.Header  // the first one
	Process   trace.Process // the first
	PID       int32         // of that process
	Depth     int           // limit of frames per stack, -1 if unknown
	Traces    int           // number of headers: a file may contain several traces
	Calls     uint64        // events
	Duration  int64         // nanoseconds between the first and the last call; 0 without a clock
	FirstTime int64         // of the first call, on the trace's clock; 0 if unknown
	Coarse    bool          // times have a resolution of a millisecond
	Modules   int
	Execs     int
	Became    string // last program that the first process ran with exec
	Exited    bool   // the process ended while it was traced
	Ended     bool   // the trace ended as planned
	Lost      loss.Table
	HeapGrown live.Amount // got from the system for the program's blocks
	// Unfollowed is the number of calls of further types of resources. Beyond
	// reports that the sizes of all blocks add up to more than 64 bits.
	Unfollowed uint64
	Beyond     bool

	bytes     uint64
	processed bool
}

// add processes a record that is not a call.
func (f *Facts) add(r *trace.Record) {
	switch r.Kind {
	case trace.KindLost:
		f.Lost.Add(r)
	case trace.KindExit:
		f.Exited = f.Exited || r.Exit.Process
	case trace.KindEnd:
		f.Ended = true
	case trace.KindHeapGrow:
		if !r.HeapGrow.Internal {
			f.HeapGrown.AddBlock(r.HeapGrow.Size)
		}
	}
}

func (d *Digest) header(h *trace.Header) {
	if d.facts.Traces++; d.facts.Traces == 1 {
		own := *h
		for _, s := range []*string{&own.Format, &own.Version, &own.Arch, &own.Filter, &own.Origin} {
			*s = strings.Clone(*s)
		}
		d.facts.Header, d.facts.Depth = own, -1
	}
	d.clock.Day = h.Clock == trace.ClockDay
	d.facts.Coarse = d.clock.Day
}

func (f *Facts) process(r *trace.Record) {
	if f.processed {
		return
	}
	f.processed = true
	f.Process, f.PID, f.Depth = r.Process, r.PID, r.Process.Depth
	f.Process.Name, f.Process.Path = strings.Clone(r.Process.Name), strings.Clone(r.Process.Path)
}

func (f *Facts) call(r *trace.Record) {
	f.Calls++
	if f.FirstTime == 0 {
		f.FirstTime = r.Time
	}
}

// size adds a size and records whether the sum exceeds 64 bits.
func (f *Facts) size(n uint64) {
	f.bytes += n
	f.Beyond = f.Beyond || f.bytes < n
}

// Mark is a context: a phase of the program, or a mark set by the user.
type Mark struct {
	Name string
	ID   uint32 // the bit
	// Event and Time are the number of events before its declaration and the
	// time of the declaration.
	Event uint64
	Time  int64
	Calls uint64 // made in it
	// ByEvent and ByTime are the intervals in which it was entered, from and
	// to, with the resolution of the curves. Contexts that share a bit share
	// them, too.
	ByEvent, ByTime [][2]uint64
}

func (d *Digest) mark(r *trace.Record) {
	if len(d.marks) == maxMarks {
		return
	}
	now := d.clock.Last()
	if r.Time != 0 && d.clock.Begun() {
		now = d.clock.Elapsed(r.Time)
	}
	for i := range d.marks {
		if m := &d.marks[i]; m.ID == r.Context.ID && m.Name == r.Context.Name {
			return
		}
	}
	d.marks = append(d.marks, Mark{Name: strings.Clone(r.Context.Name), ID: r.Context.ID, Event: d.event, Time: now})
}

// context counts a call that was made in contexts.
func (d *Digest) context(mask uint32, now int64) {
	d.contexts[0].add(d.event-1, mask)
	d.contexts[1].add(uint64(now), mask)
	for i := range d.inContext {
		if mask>>i&1 != 0 {
			d.inContext[i]++
		}
	}
}

// contextsOf returns the marks, with their intervals.
func (d *Digest) contextsOf() []Mark {
	for i := range d.marks {
		m := &d.marks[i]
		if m.ID == 0 || m.ID&(m.ID-1) != 0 {
			continue
		}
		m.Calls = d.inContext[bits.TrailingZeros32(m.ID)]
		m.ByEvent, m.ByTime = d.contexts[0].spans(m.ID), d.contexts[1].spans(m.ID)
	}
	return d.marks
}

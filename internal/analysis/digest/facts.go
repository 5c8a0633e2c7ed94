package digest

import (
	"math/bits"
	"strings"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Facts say how a trace was made and what is missing from it.
type Facts struct {
	Header    trace.Header  // the first
	Process   trace.Process // the first
	PID       int32         // of it
	Depth     int           // most frames kept per stack, -1 if unknown
	Traces    int           // headers: a file may hold several traces
	Calls     uint64        // events
	Duration  int64         // nanoseconds between the first and the last call; 0 without a clock
	FirstTime int64         // of the first call, on the trace's clock; 0 if unknown
	Coarse    bool          // times are in steps of a millisecond
	Modules   int
	Execs     int
	Became    string // the program that the first process replaced itself by last
	Exited    bool   // the process ended while it was traced
	Ended     bool   // the trace ended as planned
	Lost      map[string]*Loss
	HeapGrown live.Amount // got from the system for the program's blocks
	// Unfollowed is how many calls are of resources beyond those that are told
	// apart, Beyond that the sizes of all blocks together exceed 64 bits.
	Unfollowed uint64
	Beyond     bool

	bytes     uint64
	processed bool
}

// Loss is what is missing for one reason.
type Loss struct {
	Count      uint64
	Gap        bool  // nothing was recorded for a while, Count times
	Missing    int64 // nanoseconds of that
	HidesFrees bool  // frees may be among what is missing
}

// HiddenFrees returns how many events are missing at most that may be frees, besides
// those in gaps.
func (f *Facts) HiddenFrees() (n uint64) {
	for _, l := range f.Lost {
		if l.HidesFrees && !l.Gap {
			n += l.Count
		}
	}
	return n
}

// add takes a record that is no call.
func (f *Facts) add(r *trace.Record) {
	switch r.Kind {
	case trace.KindLost:
		reason := r.Lost.Reason
		if f.Lost[reason] == nil {
			if len(f.Lost) >= maxReasons {
				reason = noMore
			}
			f.Lost[strings.Clone(reason)] = &Loss{Gap: r.Lost.Gap(), HidesFrees: r.Lost.HidesFrees()}
		}
		l := f.Lost[reason]
		l.Count += r.Lost.Count
		if l.Gap && r.Lost.Since != 0 {
			l.Missing += max(0, r.Time-r.Lost.Since)
		}
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

// size notes when sums leave 64 bits.
func (f *Facts) size(n uint64) {
	f.bytes += n
	f.Beyond = f.Beyond || f.bytes < n
}

// Mark is a context: a phase of the program, or a mark that the user set.
type Mark struct {
	Name string
	ID   uint32 // the bit
	// Event and Time are where it was declared: after so many events.
	Event uint64
	Time  int64
	Calls uint64 // made in it
	// ByEvent and ByTime are where it was entered, from and to, as exactly as
	// the curves are. They are of the bit, if several contexts share one.
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

// context takes account of a call that was made in contexts.
func (d *Digest) context(mask uint32, now int64) {
	d.contexts[0].add(d.event-1, mask)
	d.contexts[1].add(uint64(now), mask)
	for i := range d.inContext {
		if mask>>i&1 != 0 {
			d.inContext[i]++
		}
	}
}

// contextsOf returns the marks with where they were entered.
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

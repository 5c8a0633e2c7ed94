package stacks

import (
	"cmp"
	"slices"
	"time"

	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/analysis/usage"
)

// Value selects one of the four figures of a sample.
type Value int

// The values, with the names that pprof uses.
const (
	InuseSpace   Value = iota // bytes that are live at the end
	InuseObjects              // blocks that are live at the end
	AllocSpace                // bytes that were allocated
	AllocObjects              // blocks that were allocated
	Values       = 4
)

var valueNames = [Values]string{"inuse_space", "inuse_objects", "alloc_space", "alloc_objects"}

// String returns the name of a value, as ParseValue accepts it.
func (v Value) String() string { return valueNames[v] }

// ParseValue returns the value with the given name.
func ParseValue(name string) (Value, bool) {
	i := slices.Index(valueNames[:], name)
	return Value(i), i >= 0
}

// ValueNames lists the names of all values.
func ValueNames() []string { return slices.Clone(valueNames[:]) }

// Unit returns "bytes", or "count" for numbers of blocks.
func (v Value) Unit() string {
	if v == InuseSpace || v == AllocSpace {
		return "bytes"
	}
	return "count"
}

// Of returns the selected figure of u.
func (v Value) Of(u *usage.Usage) uint64 {
	switch v {
	case InuseObjects:
		return u.Live.Blocks
	case AllocSpace:
		return u.Allocated.Bytes
	case AllocObjects:
		return u.Allocated.Blocks
	}
	return u.Live.Bytes
}

// Profile is the allocations of all stacks.
type Profile struct {
	Name string // name of the traced program
	PID  int32  // its process; 0 if unknown
	// Start is the beginning of the trace, in ns since 1970, and Duration its
	// length, in ns; they are 0 if unknown.
	Start, Duration int64
	Comments        []string
	Threads         func(pid, tid int32) string // the name of a thread; may be nil

	Locations []Location
	Samples   []Sample // the most bytes allocated first
	Total     usage.Usage
	// Span is the time from the first call to the last one, and PeakTime that
	// from the first call to when most bytes were live.
	Span, PeakTime time.Duration
	// Estimated means that the trace was recorded in windows: the samples are estimates of what
	// was allocated, and Live, Peak and Lived are not known.
	Estimated bool
}

// Known returns the values that are known.
func (p *Profile) Known() []Value {
	if p.Estimated {
		return []Value{AllocSpace, AllocObjects}
	}
	return []Value{InuseSpace, InuseObjects, AllocSpace, AllocObjects}
}

// Profile returns the sums so far. It shares memory with b.
func (b *Builder) Profile() *Profile {
	p := &Profile{Estimated: b.estimates.Any(), Locations: b.locations, Total: b.counter.Total(), Span: b.ages.span(), PeakTime: b.ages.peakTime()}
	if p.Estimated {
		all := b.estimates.All()
		p.Total, p.PeakTime = usage.Usage{Allocated: all.Amount()}, 0
		p.Comments = []string{
			b.estimates.Text(), "allocated: " + all.Blocks.Text() + " blocks, " + all.Bytes.Text() + " bytes", estimate.Lifeless,
		}
	}
	for n, s := range b.samples {
		x := Sample{Stack: b.stacks[s.stack], Label: Label{PID: s.pid, TID: s.tid, Thread: s.thread}, Usage: b.counter.Of(n)}
		x.Lived = b.ages.lived(n, x.Live.Blocks+x.Unknown.Blocks)
		if p.Estimated {
			about := b.estimates.Of(n)
			x.Usage, x.Lived = usage.Usage{Allocated: about.Amount()}, 0
		}
		if s.function != 0 {
			x.Function = b.names.Text(s.function)
		}
		p.Samples = append(p.Samples, x)
	}
	slices.SortStableFunc(p.Samples, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(b.Allocated.Bytes, a.Allocated.Bytes), cmp.Compare(b.Allocated.Blocks, a.Allocated.Blocks))
	})
	return p
}

// Frames calls f with each line of a stack, from the outermost to the
// innermost. A location without lines counts as one line with its Name as
// function.
func (p *Profile) Frames(stack []int, f func(Line)) {
	for _, n := range slices.Backward(stack) {
		l := &p.Locations[n]
		if len(l.Lines) == 0 {
			f(Line{Function: l.Name()})
		}
		for _, line := range slices.Backward(l.Lines) {
			f(line)
		}
	}
}

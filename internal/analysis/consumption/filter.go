package consumption

import (
	"math"

	"rtrace-bpf/trace"
)

// Range is a range of numbers. The zero Range contains all.
type Range struct {
	Min uint64
	// End is 1 more than the largest number; 0 means no end.
	End uint64
}

func (r Range) has(n uint64) bool { return n >= r.Min && (r.End == 0 || n < r.End) }

// Moment is an end of a range of times.
type Moment struct {
	Set bool
	// Relative counts At from the first call that reaches this bound of the
	// filter, instead of from midnight or the start of the clock.
	Relative bool
	At       int64 // ns
}

// Times is a range of times with both ends included. A bound that is not set
// does not limit it.
type Times struct {
	From, To Moment
}

// Filter selects the calls of a report. The zero Filter selects all. Sizes are
// those of allocations: a free passes if its block did. The other conditions
// apply to each call by itself, so a block whose free does not pass counts as
// not freed.
type Filter struct {
	Resource string // type; empty for all
	Sizes    []Range
	Indexes  []Range // of trace.Call.Seq
	Times    []Times
	// Contexts holds masks. A call passes a mask if it is in one of its
	// contexts, or in none if the mask is 0.
	Contexts []uint32
}

// gate is a filter in use.
type gate struct {
	Filter
	legacy bool
	from   []int64 // starts of Times
	to     []int64 // and ends
	set    []bool  // whether they are known, two per range
}

func newGate(f Filter, legacy bool) gate {
	g := gate{Filter: f, legacy: legacy, from: make([]int64, len(f.Times)), to: make([]int64, len(f.Times)), set: make([]bool, 2*len(f.Times))}
	for i, t := range f.Times {
		g.from[i], g.set[2*i] = t.From.bound(math.MinInt64)
		g.to[i], g.set[2*i+1] = t.To.bound(math.MaxInt64)
	}
	return g
}

// bound returns a bound of a range, and whether it is known yet.
func (m Moment) bound(otherwise int64) (at int64, known bool) {
	switch {
	case !m.Set:
		return otherwise, true
	case m.Relative:
		return 0, false
	}
	return m.At, true
}

func (g *gate) kind(name string) bool { return g.Resource == "" || g.Resource == name }

// passes reports whether a call passes all conditions except the resource. now
// is its time in nanoseconds, if known. Relative times count from the first
// call that passes all conditions checked before.
func (g *gate) passes(c *trace.Call, now int64, known bool) bool {
	if !known && len(g.Times) > 0 {
		return false
	}
	if c.Op == trace.OpAlloc && (c.Size > 0 || !g.legacy) {
		for _, r := range g.Sizes {
			if !r.has(c.Size) {
				return false
			}
		}
	}
	for _, r := range g.Indexes {
		if !r.has(c.Seq) {
			return false
		}
	}
	for _, mask := range g.Contexts {
		if mask&c.Context == 0 && (mask != 0 || c.Context != 0) {
			return false
		}
	}
	for i := range g.Times {
		if g.reach(2*i, now, g.Times[i].From, g.from); now < g.from[i] {
			return false
		}
		if g.reach(2*i+1, now, g.Times[i].To, g.to); now > g.to[i] {
			return false
		}
	}
	return true
}

// reach determines a relative bound with the first call that reaches it.
func (g *gate) reach(n int, now int64, m Moment, bounds []int64) {
	if !g.set[n] {
		g.set[n], bounds[n/2] = true, later(now, m.At)
	}
}

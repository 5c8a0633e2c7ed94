package timeline

import (
	"math/bits"

	"rtrace-bpf/internal/live"
)

// Range is the extremes and the last value of a quantity in an interval.
type Range struct {
	Min, Max, Last uint64
}

func (r *Range) add(v uint64, first bool) {
	if first {
		r.Min, r.Max = v, v
	}
	r.Min, r.Max, r.Last = min(r.Min, v), max(r.Max, v), v
}

// Point is the summary of an interval.
type Point struct {
	// X is the start of the interval: the number of events before it, or the
	// nanoseconds since the first call.
	X uint64
	// Events is the number of events in the interval, First and Last the
	// numbers of the first and the last one; all are 0 if there are none.
	Events, First, Last uint64
	// Time is the time of the first event, in nanoseconds since the first call.
	Time int64
	// Bytes and Blocks are the live amounts after each event of the interval.
	// In an interval without events they are the amounts live throughout.
	Bytes, Blocks Range
	// Reserved is the memory that the allocator got from the system up to the
	// end of the interval, in bytes. Memory that it gave back is not known.
	Reserved uint64
	// Allocated and Freed are the amounts allocated and freed in the interval.
	// A move counts in both.
	Allocated, Freed live.Amount
}

// merge joins the next interval to p.
func (p *Point) merge(next *Point) {
	switch {
	case next.Events == 0:
		p.Reserved = max(p.Reserved, next.Reserved)
		return
	case p.Events == 0:
		x, reserved := p.X, p.Reserved
		*p = *next
		p.X, p.Reserved = x, max(reserved, next.Reserved)
		return
	}
	p.Events += next.Events
	p.Last = next.Last
	p.Bytes.merge(next.Bytes)
	p.Blocks.merge(next.Blocks)
	p.Reserved = max(p.Reserved, next.Reserved)
	p.Allocated.Add(next.Allocated)
	p.Freed.Add(next.Freed)
}

func (r *Range) merge(next Range) {
	r.Min, r.Max, r.Last = min(r.Min, next.Min), max(r.Max, next.Max), next.Last
}

// series is a sequence of points of equal width.
type series struct {
	points []Point
	width  uint64 // a power of radix
	radix  uint64 // how many points become one when there are too many
	limit  int
	now    int // the current point; axes do not go back
}

// newSeries makes room for at least twice the given number of points. The
// points that remain after the last doubling can then be joined to any smaller
// number.
func newSeries(points int) series { return seriesOf(1<<bits.Len(uint(2*points-1)), 2) }

// newRoundSeries is the same with widths that are powers of ten.
func newRoundSeries(points int) series { return seriesOf(10*points, 10) }

func seriesOf(limit int, radix uint64) series {
	return series{limit: limit, radix: radix, width: 1, points: make([]Point, 0, limit)}
}

// at returns the point whose interval contains x, or the current one if x lies
// before it.
func (s *series) at(x uint64) *Point {
	for x/s.width >= uint64(s.limit) {
		s.widen()
	}
	n := int(x / s.width)
	for len(s.points) <= n {
		s.points = append(s.points, Point{X: uint64(len(s.points)) * s.width})
	}
	s.now = max(s.now, n)
	return &s.points[s.now]
}

// last returns the current point. There must be one.
func (s *series) last() *Point { return &s.points[s.now] }

// widen joins neighbours.
func (s *series) widen() {
	s.width *= s.radix
	s.now /= int(s.radix)
	s.points = join(s.points, int(s.radix))
}

// join joins each n points, in place.
func join(points []Point, n int) []Point {
	out := points[:0]
	for i := 0; i < len(points); i += n {
		p := points[i]
		for j := i + 1; j < min(i+n, len(points)); j++ {
			p.merge(&points[j])
		}
		out = append(out, p)
	}
	return out
}

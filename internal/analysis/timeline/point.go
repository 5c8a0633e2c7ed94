package timeline

import (
	"math/bits"

	"rtrace-bpf/internal/live"
)

// Range is a value in the course of an interval.
type Range struct {
	Min, Max, Last uint64
}

func (r *Range) add(v uint64, first bool) {
	if first {
		r.Min, r.Max = v, v
	}
	r.Min, r.Max, r.Last = min(r.Min, v), max(r.Max, v), v
}

// Point sums up an interval.
type Point struct {
	// X is where the interval begins: the number of events, or the
	// nanoseconds since the first call, that lie before it.
	X uint64
	// Events is how many events lie in the interval, First and Last the numbers
	// of the first and the last; 0 if there are none.
	Events, First, Last uint64
	// Time is that of the first event, in nanoseconds since the first call.
	Time int64
	// Bytes and Blocks are what is live after each event of the interval; in
	// one without events, what is live throughout.
	Bytes, Blocks Range
	// Reserved is the memory that the allocator got from the system up to the
	// end of the interval, in bytes. What it gave back is not known.
	Reserved uint64
	// Allocated and Freed are what happened in the interval. A move is both.
	Allocated, Freed live.Amount
}

// merge takes the next interval into p.
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

// series is points of equal width.
type series struct {
	points []Point
	shift  uint // the width is 1<<shift
	limit  int
	now    int // the point in use: axes do not go back
}

// newSeries makes room for at least twice the points asked for: when n of them
// are left after the last doubling, any number up to n can be made of them.
func newSeries(points int) series {
	limit := 1 << bits.Len(uint(2*points-1))
	return series{limit: limit, points: make([]Point, 0, limit)}
}

// at returns the point whose interval x is in. A smaller x than the last one's
// is in the same.
func (s *series) at(x uint64) *Point {
	for x>>s.shift >= uint64(s.limit) {
		s.halve()
	}
	n := int(x >> s.shift)
	for len(s.points) <= n {
		s.points = append(s.points, Point{X: uint64(len(s.points)) << s.shift})
	}
	s.now = max(s.now, n)
	return &s.points[s.now]
}

// last returns the point in use. There is one.
func (s *series) last() *Point { return &s.points[s.now] }

// halve makes one point of each two.
func (s *series) halve() {
	s.shift++
	s.now /= 2
	s.points = join(s.points, 2)
}

// join makes one point of each n, in place.
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

// Width is the width of an interval in events or nanoseconds.
func (t *Timeline) Width() uint64 { return uint64(t.group()) << t.series.shift }

// group is how many of the points kept become one of those asked for.
func (t *Timeline) group() int { return max(1, (len(t.series.points)+t.limit-1)/t.limit) }

// Points returns the points so far, at most as many as asked for.
func (t *Timeline) Points() []Point {
	points := join(append([]Point(nil), t.series.points...), t.group())
	for i := 1; i < len(points); i++ {
		p, before := &points[i], &points[i-1]
		p.Reserved = max(p.Reserved, before.Reserved)
		if p.Events == 0 {
			p.Bytes = Range{before.Bytes.Last, before.Bytes.Last, before.Bytes.Last}
			p.Blocks = Range{before.Blocks.Last, before.Blocks.Last, before.Blocks.Last}
			p.Time = int64(p.X)
		}
	}
	return points
}

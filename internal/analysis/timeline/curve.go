package timeline

import "rtrace-bpf/internal/live"

// Series is a sequence of points of equal width along an axis, for analyses
// that follow blocks themselves. When there are too many points, it joins
// neighbours and doubles the width.
type Series struct {
	points series
	limit  int
}

// NewSeries returns an empty Series of at most the given number of points.
func NewSeries(points int) *Series { return &Series{newSeries(points), points} }

// At returns the point whose interval contains x, or the last one if x lies
// before it. The point is valid until the next call.
func (s *Series) At(x uint64) *Point { return s.points.at(x) }

// Level counts an event with the given number, after which the given amount is
// live. time is in nanoseconds since the first call.
func (p *Point) Level(event uint64, time int64, now live.Amount) {
	if p.Events == 0 {
		p.First, p.Time = event, time
	}
	p.Events++
	p.Last = event
	p.Blocks.add(now.Blocks, p.Events == 1)
	p.Bytes.add(now.Bytes, p.Events == 1)
}

// Width returns the width of an interval.
func (s *Series) Width() uint64 { return uint64(s.group()) * s.points.width }

// group returns how many of the stored points are joined to one that Points
// returns.
func (s *Series) group() int { return max(1, (len(s.points.points)+s.limit-1)/s.limit) }

// Points returns the points so far. An interval without events has the values
// at the end of the one before.
func (s *Series) Points() []Point {
	points := join(append([]Point(nil), s.points.points...), s.group())
	for i := 1; i < len(points); i++ {
		if p, before := &points[i], &points[i-1]; p.Events == 0 {
			p.Bytes = Range{before.Bytes.Last, before.Bytes.Last, before.Bytes.Last}
			p.Blocks = Range{before.Blocks.Last, before.Blocks.Last, before.Blocks.Last}
		}
	}
	return points
}

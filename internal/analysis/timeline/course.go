package timeline

// course is the points along an axis.
type course struct {
	axis Axis
	series
}

// newCourses returns a course for the axis, or one for each axis until it is known whether
// the trace has times.
func newCourses(axis Axis, points int) []course {
	if axis == ByTimeIfKnown {
		return []course{{ByEvent, newRoundSeries(points)}, {ByTime, newRoundSeries(points)}}
	}
	return []course{{axis, newRoundSeries(points)}}
}

// call counts a call in the point whose interval contains it, and returns that point.
func (c *course) call(event uint64, now int64) *Point {
	x := event - 1
	if c.axis == ByTime {
		x = uint64(now)
	}
	p := c.at(x)
	if p.Events == 0 {
		p.First, p.Time = event, now
	}
	p.Events++
	p.Last = event
	return p
}

// Axis returns the axis that Points are spread over.
func (t *Timeline) Axis() Axis { return t.course().axis }

// course returns the course to show.
func (t *Timeline) course() *course {
	if len(t.courses) > 1 && t.total.Duration > 0 {
		return &t.courses[1]
	}
	return &t.courses[0]
}

// Width returns the width of an interval, in events or nanoseconds.
func (t *Timeline) Width() uint64 {
	c := t.course()
	return uint64(c.group(t.limit)) * c.width
}

// group returns how many of the stored points are joined to one that Points returns, of which
// there are at most limit: 1, 2, 5, 10 and so on, so that the width is a round number.
func (c *course) group(limit int) int {
	for n := 1; ; n *= 10 {
		for _, step := range [...]int{1, 2, 5} {
			if len(c.points) <= n*step*limit {
				return n * step
			}
		}
	}
}

// Points returns the points so far, at most as many as Options asked for.
func (t *Timeline) Points() []Point {
	c := t.course()
	points := join(append([]Point(nil), c.points...), c.group(t.limit))
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

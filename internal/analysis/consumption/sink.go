package consumption

// Sink receives the series of the reports while they are counted. A series
// consists of lines of numbers under a heading.
type Sink interface {
	// Begin begins a series of a report and returns its number.
	Begin(report Report, heading string) int
	// Point writes a point: x on the axis of the report, in nanoseconds or
	// calls, and a value modulo 2^64.
	Point(series int, x int64, y uint64)
	// Break ends a line of points.
	Break(series int)
	// Row writes numbers that are not a point.
	Row(series int, values ...uint64)
}

// nowhere is a Sink that discards everything.
type nowhere struct{}

func (nowhere) Begin(Report, string) int { return 0 }

func (nowhere) Point(int, int64, uint64) {}

func (nowhere) Break(int) {}

func (nowhere) Row(int, ...uint64) {}

// heading returns the first line of a series, which contains its name.
func heading(name string) string { return `Resource "` + name + `"` }

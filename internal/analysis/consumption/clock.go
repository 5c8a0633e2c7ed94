package consumption

import (
	"math"

	"rtrace-bpf/trace"
)

const (
	day         = 24 * 3600 * int64(1e9)
	millisecond = int64(1e6)
)

// clock reads the times of a trace, in nanoseconds, so that they never go back:
// those of the day go on at midnight. In legacy mode they are what the text of
// sp-rtrace has, milliseconds of the day.
type clock struct {
	legacy bool
	daily  bool
	begun  bool
	added  int64 // for the midnights
	raw    int64
	last   int64
}

func (c *clock) begin(h *trace.Header) { c.daily = h.Clock == trace.ClockDay }

// read returns the time of a record. One without a time has that of the one
// before; ok says whether there is any.
func (c *clock) read(t int64) (now int64, ok bool) {
	switch {
	case t == 0:
		return c.last, c.begun && !c.legacy
	case c.legacy:
		c.begun = true
		c.last = t % day / millisecond * millisecond
		return c.last, true
	case !c.begun:
		c.begun, c.last = true, t
	case c.daily && c.raw-t > day/2:
		c.added += day
	}
	c.raw = t
	c.last = max(c.last, t+c.added)
	return c.last, true
}

// later returns the place on an axis that is n after at, neither of which is
// negative, or the last place that there is.
func later(at, n int64) int64 {
	if at > math.MaxInt64-n {
		return math.MaxInt64
	}
	return at + n
}

// Span is the part of the trace that the reports are of, from the first to the
// last call that passes the filter.
type Span struct {
	// First and Last are its ends in nanoseconds of the trace's clock, going on
	// at midnight, or if Calls is set numbers of calls that passed the filter.
	First, Last int64
	// Calls says that the axis of the reports is the number of the call.
	Calls bool
	// Total is the number of calls in it.
	Total uint64
	// ByCall says that the curves are spread over the calls though the reports
	// are not, since all calls have the same time.
	ByCall bool

	counted uint64
}

// Duration is the length of the span.
func (s *Span) Duration() int64 { return s.Last - s.First }

// Width is the largest place on the axis of the curves; the smallest is 0.
func (s *Span) Width() int64 {
	if s.ByCall {
		return max(0, int64(s.Total)-1)
	}
	return s.Duration()
}

// count returns where the next call is on the axis of the reports and of the
// curves.
func (s *Span) count(now int64) (at, place int64) {
	n := int64(s.counted)
	switch {
	case s.Calls:
		return n + 1, n
	case s.ByCall:
		return now, n
	}
	return now, min(max(now-s.First, 0), s.Width())
}

// latest is where the call is that was counted last.
func (s *Span) latest(now int64) (at, place int64) {
	if s.counted == 0 {
		return s.First, 0
	}
	s.counted--
	at, place = s.count(now)
	s.counted++
	return at, place
}

// end returns where the lines of blocks end that were not freed. In the original
// that is the last allocation.
func (s *Span) end(legacy bool, kinds []*Kind) (at, place int64) {
	at = s.Last
	if legacy {
		at = 0
		for _, k := range kinds {
			at = max(at, k.lastAlloc)
		}
	}
	return at, s.Width()
}

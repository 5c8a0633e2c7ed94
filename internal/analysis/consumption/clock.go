package consumption

import (
	"math"

	"rtrace-bpf/trace"
)

const (
	day         = 24 * 3600 * int64(1e9)
	millisecond = int64(1e6)
)

// clock converts the times of a trace to nanoseconds that never go back: times
// of the day continue after midnight. In legacy mode they are those of
// sp-rtrace's text, milliseconds of the day.
type clock struct {
	legacy bool
	daily  bool
	begun  bool
	added  int64 // for each midnight
	raw    int64
	last   int64
}

func (c *clock) begin(h *trace.Header) { c.daily = h.Clock == trace.ClockDay }

// read returns the time of a record, or for a record without one the time of
// the record before. ok is false if there is none.
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

// later returns the position n after at on an axis, or the last possible
// position. Neither may be negative.
func later(at, n int64) int64 {
	if at > math.MaxInt64-n {
		return math.MaxInt64
	}
	return at + n
}

// Span is the part of the trace that the reports cover, from the first to the
// last call that passes the filter.
type Span struct {
	// First and Last are its ends: nanoseconds of the trace's clock, continued
	// after midnight, or if Calls is set numbers of calls that passed the
	// filter.
	First, Last int64
	// Calls reports that the axis of the reports is the number of the call.
	Calls bool
	// Total is the number of calls in it.
	Total uint64
	// ByCall reports that the axis of the curves is the number of the call
	// although that of the reports is not, because all calls have the same
	// time.
	ByCall bool

	counted uint64
}

// Duration returns the length of the span.
func (s *Span) Duration() int64 { return s.Last - s.First }

// Width returns the largest position on the axis of the curves; the smallest is
// 0.
func (s *Span) Width() int64 {
	if s.ByCall {
		return max(0, int64(s.Total)-1)
	}
	return s.Duration()
}

// count returns the position of the next call on the axis of the reports and on
// that of the curves.
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

// latest returns the positions of the last counted call.
func (s *Span) latest(now int64) (at, place int64) {
	if s.counted == 0 {
		return s.First, 0
	}
	s.counted--
	at, place = s.count(now)
	s.counted++
	return at, place
}

// end returns the positions at which the lines of unfreed blocks end. In the
// original that is the last allocation.
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

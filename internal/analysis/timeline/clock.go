package timeline

import (
	"math"

	"rtrace-bpf/trace"
)

// Clock converts the times of records to nanoseconds since the first call,
// which never go back.
type Clock struct {
	Day bool // times restart at midnight

	begun bool
	start int64 // the first time in the trace
	first int64 // start, less a day for each midnight
	raw   int64 // the last time in the trace
	last  int64
}

const day = 24 * 3600 * int64(1e9)

// Elapsed returns the time from the first call to a record, in nanoseconds. A
// record without a time gets that of the one before.
func (c *Clock) Elapsed(t int64) int64 {
	switch {
	case t == 0:
		return c.last
	case !c.begun:
		c.begun, c.start, c.first = true, t, t
	case c.Day && c.raw-t > day/2:
		c.first -= day
	}
	c.raw = t
	c.last = max(c.last, t-c.first)
	return c.last
}

// Begun reports whether any record had a time.
func (c *Clock) Begun() bool { return c.begun }

// Last returns the last result of Elapsed.
func (c *Clock) Last() int64 { return c.last }

// Since returns what Elapsed would return, without counting the record.
func (c *Clock) Since(t int64) int64 {
	after := *c
	return after.Elapsed(t)
}

// Unwrapped returns a time of the trace's clock without the steps back at midnight. Differences of
// such times are those of the clock. It does not count a record, and there need not have been any.
func (c *Clock) Unwrapped(t int64) int64 {
	if !c.begun {
		return t
	}
	if c.Day && c.raw-t > day/2 {
		t += day
	} else if c.Day && t-c.raw > day/2 {
		t -= day
	}
	return t + c.start - c.first
}

// Before returns a time that Unwrapped returned before the first call, as it is for a first call at
// the time first.
func (c *Clock) Before(t, first int64) int64 {
	if c.Day && t-first > day/2 {
		t -= day
	}
	return t
}

// FromFirst returns the time from the first call to a time that Unwrapped returned, or the nearest
// 64-bit number. It is negative if the call was later.
func (c *Clock) FromFirst(t int64) int64 {
	d := t - c.start
	switch {
	case !c.begun:
		return 0
	case t >= c.start && d < 0:
		return math.MaxInt64
	case t < c.start && d > 0:
		return math.MinInt64
	}
	return d
}

// First returns the time of the first record that had one, on the trace's
// clock.
func (c *Clock) First() int64 { return c.start }

// wallTime returns a time of the clock of a trace in nanoseconds since 1970; 0 if it is unknown.
func wallTime(h *trace.Header, t int64) int64 {
	switch {
	case h.WallTime != 0:
		return t - h.ClockTime + h.WallTime
	case h.Clock == trace.ClockWall:
		return t
	}
	return 0
}

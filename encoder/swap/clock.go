package swap

import (
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

const day = 24 * 3600 * int64(1e9)

// clock converts the times of a trace to wall clock times.
type clock struct {
	daily bool
	known bool  // shift is known
	shift int64 // ns to add to a time of the trace
	start int64 // wall clock time when tracing began, ns since 1970; 0 if unknown
	last  int64 // last time of the trace
	days  int64 // ns of the midnights that passed
	wrote int64 // last time that was written
}

func (c *clock) header(h *trace.Header) {
	wrote := c.wrote
	*c = clock{daily: h.Clock == trace.ClockDay, wrote: wrote}
	switch {
	case h.Clock == trace.ClockWall:
		c.known = true
	case h.WallTime != 0:
		c.known, c.shift = true, h.WallTime-h.ClockTime
	}
}

// wall returns the time of a record in ns since 1970. A record without a time has that
// of the one before. A trace that does not record its date is put into the first second
// that readers can distinguish from nanoseconds.
func (c *clock) wall(t int64) int64 {
	if t == 0 {
		if c.wrote == 0 {
			c.wrote = max(c.start, wire.MinSeconds*1e9)
		}
		return c.wrote
	}
	if c.daily && c.last-t > day/2 {
		c.days += day
	}
	c.last = t
	if !c.known {
		c.known = true
		c.shift = c.start - t
		if c.start < wire.MinSeconds*1e9 {
			c.shift = wire.MinSeconds * 1e9
		}
	}
	c.wrote = t + c.days + c.shift
	return c.wrote
}

package swap

import (
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

const day = 24 * 3600 * int64(1e9)

// clock turns the times of a trace into those of the wall.
type clock struct {
	daily bool
	known bool  // shift is
	shift int64 // from the trace's clock
	start int64 // when tracing began, by the wall; 0 if unknown
	last  int64 // of the trace
	days  int64 // ns for the midnights that were passed
	wrote int64 // the last time
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

// wall returns the time of a record in ns since 1970. One without a time has that
// of the one before. A trace that does not tell when it was made is one of the first
// second that readers can tell from nanoseconds.
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

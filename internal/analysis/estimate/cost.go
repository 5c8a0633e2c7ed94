package estimate

import (
	"fmt"
	"time"

	"rtrace-bpf/trace"
)

// twice is the slow-down from which on it is a factor instead of a percentage.
const twice = 2

// SlowDown returns what recording cost a process, as text: how much more processor time it used
// than without being recorded.
func SlowDown(c *trace.Cost) string {
	how := fmt.Sprintf("estimated: tracing took %s of %s", rounded(c.Added), rounded(c.Used))
	switch times, low, high, atLeast := c.Slower(); {
	case atLeast:
		return fmt.Sprintf("at least %.1f times as much CPU time as without tracing; %s", times, how)
	case times >= twice:
		return fmt.Sprintf("about %.1f times (%.1f to %.1f) as much CPU time as without tracing; %s", times, low, high, how)
	default:
		more := func(x float64) float64 { return 100 * (x - 1) }
		return fmt.Sprintf("about %.2f %% (%.2f to %.2f) more CPU time than without tracing; %s", more(times), more(low), more(high), how)
	}
}

// rounded returns a time in ns as text.
func rounded(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(10 * time.Microsecond)
	}
	return d.String()
}

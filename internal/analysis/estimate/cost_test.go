package estimate

import (
	"testing"

	"rtrace-bpf/trace"
)

// What recording cost is a percentage, a factor from twice on, and a lower bound where the
// process's own time is too small a difference.
func TestSlowDown(t *testing.T) {
	for want, c := range map[string]*trace.Cost{
		"about 0.00 % (0.00 to 0.00) more CPU time than without tracing; estimated: tracing took 0s of 5s":       {Used: 5e9},
		"about 25.00 % (17.65 to 33.33) more CPU time than without tracing; estimated: tracing took 1s of 5s":    {Used: 5e9, Added: 1e9},
		"about 2.0 times (1.6 to 2.7) as much CPU time as without tracing; estimated: tracing took 40ms of 80ms": {Used: 80e6, Added: 40e6},
		"at least 2.5 times as much CPU time as without tracing; estimated: tracing took 4s of 5s":               {Used: 5e9, Added: 4e9},
		"at least 3.5 times as much CPU time as without tracing; estimated: tracing took 6.12s of 5s":            {Used: 5e9, Added: 6_123_456_789},
	} {
		if got := SlowDown(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

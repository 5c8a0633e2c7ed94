package order

import (
	"golang.org/x/sys/unix"
)

// Clock returns the time of CLOCK_MONOTONIC in nanoseconds, the clock of the events.
func Clock() uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail with these arguments
	return uint64(ts.Nano())
}

package tracer

import (
	"golang.org/x/sys/unix"
)

// Limits of the queue between the rings and the reader of records. When it is
// full the rings take the rest, and when those are full the programs count.
const (
	batchEvents = 4096
	batchQueue  = 32
)

// clock reads CLOCK_MONOTONIC, the clock of the events.
func clock() uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail with these arguments
	return uint64(ts.Nano())
}

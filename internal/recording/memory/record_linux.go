package memory

import (
	"golang.org/x/sys/unix"

	"rtrace-bpf/trace"
)

// last reports whether a record ends the trace of a process.
func last(r *trace.Record) bool {
	return r.Kind == trace.KindEnd || r.Kind == trace.KindExit && r.Exit.Process
}

// now returns the time of CLOCK_MONOTONIC in nanoseconds.
func now() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail with these arguments
	return t.Nano()
}

package main

import (
	"os"
	"syscall"
)

// peakMemory returns the largest resident memory of a process, in bytes.
func peakMemory(s *os.ProcessState) int64 {
	if usage, ok := s.SysUsage().(*syscall.Rusage); ok {
		return int64(usage.Maxrss) << 10 //nolint:unconvert // 32 bits on some machines
	}
	return 0
}

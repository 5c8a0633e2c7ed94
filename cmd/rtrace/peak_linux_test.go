package main

import (
	"os"
	"syscall"
)

// peakMemory is the most memory a process had resident, in bytes.
func peakMemory(s *os.ProcessState) int64 {
	if usage, ok := s.SysUsage().(*syscall.Rusage); ok {
		return int64(usage.Maxrss) << 10 //nolint:unconvert // 32 bits on some machines
	}
	return 0
}

package machine

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// Gauge reads how much memory of one process is resident and how much processor time it has
// used. A reading takes two system calls, whatever the size of the process.
type Gauge struct {
	pid   int
	page  uint64 // bytes
	statm *source
}

// NewGauge returns a Gauge for a process. The error is [ErrGone] if there is none.
func NewGauge(pid int) (*Gauge, error) {
	statm, err := openSource("/proc/"+strconv.Itoa(pid)+"/statm", 256)
	if err != nil {
		return nil, fmt.Errorf("sizes of process %d: %w", pid, gone(err))
	}
	return &Gauge{pid: pid, page: uint64(os.Getpagesize()), statm: statm}, nil
}

// Resident returns the resident memory in bytes. The error is [ErrGone] if the process has no
// memory any more.
func (g *Gauge) Resident() (uint64, error) {
	text, err := g.statm.once()
	if err != nil {
		return 0, gone(err)
	}
	_, resident, _, ok := parseStatm(text)
	if !ok || resident == 0 {
		return 0, ErrGone
	}
	return resident * g.page, nil
}

// CPU returns the processor time of all threads of the process, including those that have
// ended. The error is [ErrGone] if the process has ended.
func (g *Gauge) CPU() (time.Duration, error) {
	ns, err := cpuClock(g.pid)
	if err != nil {
		return 0, gone(err)
	}
	return time.Duration(ns), nil
}

// Close closes the Gauge, which may be nil.
func (g *Gauge) Close() {
	if g != nil {
		g.statm.Close()
	}
}

package stacks

import (
	"time"

	"rtrace-bpf/trace"
)

// ages adds up how long the blocks of samples live, without storing a time for
// each block: the sum of the times at which they end, less the sum of those at
// which they began. Sums are modulo 2^64.
type ages struct {
	first, now int64 // on the trace's clock, of calls; 0 before the first
	sums       []uint64
	peaks      uint64
	peak       int64 // when most bytes were live
}

// micros returns the time since the first call, in microseconds.
func (a *ages) micros() uint64 { return uint64(a.now-a.first) / 1000 }

func (a *ages) observe(r *trace.Record) {
	if r.Kind != trace.KindCall || r.Time == 0 {
		return
	}
	if a.first == 0 {
		a.first = r.Time
	}
	a.now = max(a.now, r.Time)
}

// began counts a block of a sample, or none if n is negative.
func (a *ages) began(n int) {
	if n < 0 {
		return
	}
	for n >= len(a.sums) {
		a.sums = append(a.sums, 0)
	}
	a.sums[n] -= a.micros()
}

func (a *ages) ended(n int, blocks uint64) { a.sums[n] += blocks * a.micros() }

// peaked notes the time if there was a new peak.
func (a *ages) peaked(peaks uint64) {
	if peaks != a.peaks {
		a.peaks, a.peak = peaks, a.now
	}
}

// lived returns the lifetimes of all blocks of a sample, of which some have not
// ended.
func (a *ages) lived(n int, open uint64) uint64 { return a.sums[n] + open*a.micros() }

func (a *ages) span() time.Duration { return time.Duration(a.now - a.first) }

func (a *ages) peakTime() time.Duration {
	if a.peaks == 0 {
		return 0
	}
	return time.Duration(a.peak - a.first)
}

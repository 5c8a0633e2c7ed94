package aggregate_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/live"
)

// BenchmarkEngine measures the CPU time for a call, and the peak of the resident
// memory of this process: run each size in a process of its own, with
// -benchtime 500000000x for 10⁹ calls, and with GOGC=50 as a live view would.
// State is taken every million calls.
func BenchmarkEngine(b *testing.B) {
	for _, size := range []struct{ blocks, stacks int }{{100_000, 100}, {100_000, 10_000}, {1_000_000, 10_000}} {
		b.Run(fmt.Sprintf("live=%d,stacks=%d", size.blocks, size.stacks), func(b *testing.B) {
			l, e := newLoad(size.blocks, size.stacks), aggregate.New()
			l.run(e, size.blocks)
			before := cpu(b)
			b.ResetTimer()
			for left := b.N; left > 0; left -= 500_000 {
				l.run(e, min(left, 500_000))
				e.Interval(l.r.Time)
				e.State()
			}
			b.StopTimer()
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(2*b.N), "cpu-ns/call")
			b.ReportMetric(peak(b), "peak-MiB")
		})
	}
}

// BenchmarkBlocks measures the table of live blocks alone, for comparison.
func BenchmarkBlocks(b *testing.B) {
	l, blocks := newLoad(100_000, 10_000), live.NewBlocks()
	l.run(blocks, 100_000)
	before := cpu(b)
	for b.Loop() {
		l.run(blocks, 1)
	}
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(2*b.N), "cpu-ns/call")
}

// cpu returns the CPU time that this process has used.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak returns the largest resident memory of this process so far, in MiB.
func peak(tb testing.TB) float64 {
	tb.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		tb.Fatal("no VmHWM")
	}
	n, err := strconv.ParseUint(string(m[1]), 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return float64(n) / 1024
}

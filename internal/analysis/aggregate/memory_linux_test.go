package aggregate_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/live"
)

// Goals of the peak of the resident memory, with garbage as the commands limit it
// (docs/performance.md).
var goals = []struct {
	blocks, stacks int
	mebibytes      float64
}{{100_000, 10_000, 64}, {1_000_000, 10_000, 150}}

const (
	peakCalls = "ENGINE_CALLS"  // number of calls of TestPeak; 10⁷ if it is not set
	peakChild = "ENGINE_BLOCKS" // number of live blocks, for a process that TestPeak starts
)

// TestPeak: a process that feeds an engine with many calls stays below the goals,
// with the program itself and the garbage. All figures are read once in a million
// calls.
func TestPeak(t *testing.T) {
	calls := 4_000_000
	if text := os.Getenv(peakCalls); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		calls = n
	}
	if child := os.Getenv(peakChild); child != "" {
		for _, goal := range goals {
			if child == strconv.Itoa(goal.blocks) {
				feed(goal.blocks, goal.stacks, calls)
				t.Logf("peak %.1f MiB, %.2f µs of CPU time per call", peak(t), cpu(t).Seconds()*1e6/float64(calls))
			}
		}
		return
	}
	for _, goal := range goals {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPeak$", "-test.v", "-test.timeout=0")
		cmd.Env = append(os.Environ(), "GOGC=25", fmt.Sprintf("%s=%d", peakChild, goal.blocks))
		out, err := cmd.CombinedOutput()
		m := regexp.MustCompile(`peak ([0-9.]+) MiB, .*`).FindSubmatch(out)
		if err != nil || m == nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Logf("%d calls, %d live blocks, %d call sites: %s", calls, goal.blocks, goal.stacks, m[0])
		if got, err := strconv.ParseFloat(string(m[1]), 64); err != nil || got > goal.mebibytes {
			t.Errorf("%d live blocks: %v MiB, more than %v", goal.blocks, got, goal.mebibytes)
		}
	}
}

// feed feeds an engine with calls.
func feed(blocks, stacks, calls int) {
	l, e := newLoad(blocks, stacks), aggregate.New()
	for left := calls / 2; left > 0; left -= 500_000 {
		l.run(e, min(left, 500_000))
		e.Interval(l.r.Time)
		e.State()
	}
}

// BenchmarkEngine measures the CPU time for a call. State is taken every million
// calls.
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

// BenchmarkPairs measures the CPU time for a call of a thread that allocates a block and frees it,
// at one call site: what a recording adds to each call for its summary.
func BenchmarkPairs(b *testing.B) {
	l, e := newLoad(0, 1), aggregate.New()
	before := cpu(b)
	for b.Loop() {
		l.run(e, 1)
	}
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(2*b.N), "cpu-ns/call")
}

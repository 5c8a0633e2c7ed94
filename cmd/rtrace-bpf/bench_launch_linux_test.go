package main

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"rtrace-bpf/internal/testutil"
)

// BenchmarkLaunch measures how much longer a minimal command takes with tracing, until
// rtrace-bpf has ended. The goal is at most 150 ms. Runs with and without tracing
// alternate; their medians count.
func BenchmarkLaunch(b *testing.B) {
	testutil.NeedBPF(b)
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	run := func(argv ...string) (took, processor time.Duration) {
		b.Helper()
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = b.TempDir(), append(os.Environ(), asCommand+"=1")
		start := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		return time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	var alone, traced, processor []time.Duration
	for b.Loop() {
		took, _ := run("/bin/true")
		alone = append(alone, took)
		took, used := run(exe, "-q", "--", "/bin/true")
		traced, processor = append(traced, took), append(processor, used)
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return all[len(all)/2].Seconds() * 1e3
	}
	b.ReportMetric(median(traced)-median(alone), "more-ms/launch")
	b.ReportMetric(median(processor), "cpu-ms/launch")
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// BenchmarkSwapSystemAndSample measures how much slower a process computes while the
// command records samples and the state of the machine. The goal is at most 1.02 times.
// Runs with and without tracing alternate, and the processor time of the process counts.
// wall-x is the ratio of elapsed times, to which the command contributes when all
// processors are busy.
func BenchmarkSwapSystemAndSample(b *testing.B) {
	testutil.NeedBPF(b)
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	const thousands = 3_000_000
	run := func(flags ...string) float64 {
		b.Helper()
		child := testutil.Spawn(b, testutil.Build(b, "pace"), "compute", fmt.Sprint(thousands))
		child.Ready()
		var tracer *testutil.Child
		if len(flags) > 0 {
			dir := b.TempDir()
			cmd := exec.Command(exe, append(flags, "-q", "-p", fmt.Sprint(child.PID), "--ready-file", "ready")...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), asCommand+"=1")
			tracer = testutil.Start(b, cmd)
			testutil.WaitFile(b, filepath.Join(dir, "ready"), tracer)
		}
		child.Go()
		child.Succeed()
		if tracer != nil {
			tracer.Succeed()
		}
		var ns float64
		if _, err := fmt.Sscanf(string(child.Output()), "pace %f", &ns); err != nil {
			b.Fatal(err)
		}
		return ns
	}
	ways := []struct {
		name  string
		flags []string
	}{
		{"plain", nil},
		{"calls", []string{"--format", "swap"}},
		{"both-100ms", []string{"--format", "swap", "--swap-sample", "10ms", "--swap-system", "100ms"}},
		{"both-1s", []string{"--format", "swap", "--swap-sample", "10ms", "--swap-system", "1s"}},
	}
	all := make([][]float64, len(ways))
	for b.Loop() {
		for i, w := range ways {
			all[i] = append(all[i], run(w.flags...))
		}
	}
	plain := 0.0
	for i, w := range ways {
		slices.Sort(all[i])
		median := all[i][len(all[i])/2]
		if i == 0 {
			plain = median
			b.ReportMetric(plain, "plain-ns/op")
			continue
		}
		b.ReportMetric(median/plain, w.name+"-x")
	}
}

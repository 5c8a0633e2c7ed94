package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// BenchmarkSlowDown measures how many times as much CPU time a program uses while it is recorded,
// for programs of three shares of calls, and how many times the trace has. Runs with and
// without tracing alternate; their medians count.
func BenchmarkSlowDown(b *testing.B) {
	testutil.NeedBPF(b)
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	program := testutil.Build(b, "rates")
	median := func(all []float64) float64 {
		slices.Sort(all)
		return all[len(all)/2]
	}
	for name, args := range map[string][]string{
		"many calls": {"20000", "3000"}, "some calls": {"10000", "100000"}, "few calls": {"1000", "1000000"},
	} {
		b.Run(name, func(b *testing.B) {
			used := func(argv ...string) float64 {
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Env = append(os.Environ(), asCommand+"=1")
				out, err := cmd.Output()
				var x struct {
					CPU float64 `json:"cpu_ns"`
				}
				if err == nil {
					err = json.Unmarshal(out, &x)
				}
				if err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				return x.CPU
			}
			var measured, low, estimated []float64
			for b.Loop() {
				path := filepath.Join(b.TempDir(), "trace")
				alone := used(append([]string{program}, args...)...)
				measured = append(measured, used(append([]string{exe, "-q", "-o", path, "--", program}, args...)...)/alone)
				for _, c := range costsIn(b, path) {
					times, least, _, _ := c.Slower()
					estimated, low = append(estimated, times), append(low, least)
				}
			}
			b.ReportMetric(median(measured), "times-measured")
			b.ReportMetric(median(estimated), "times-estimated")
			b.ReportMetric(median(low), "times-least")
			b.ReportMetric(0, "ns/op")
		})
	}
}

package main

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/trace"
)

// costsIn returns the records of costs in a trace.
func costsIn(t testing.TB, path string) (all []trace.Cost) {
	t.Helper()
	in, err := decoder.OpenFile(path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var r trace.Record
	for in.ReadRecord(&r) == nil {
		if r.Kind == trace.KindCost {
			all = append(all, r.Cost)
		}
	}
	return all
}

// Each format has what a recording cost the process, once, and the summary prints the same.
func TestSlowDownIsRecorded(t *testing.T) {
	for format, where := range formats(t) {
		t.Run(format, func(t *testing.T) {
			child := waiting(t, "phases", "2", "300")
			r := start(t, child, "--format", format)
			child.Go()
			child.Ready()
			r.Signal(syscall.SIGINT)
			r.Wait()
			child.Go()
			child.Ready()
			child.Go()
			child.Succeed()
			path := filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, where.suffix))
			all := costsIn(t, path)
			if len(all) != 1 || all[0].Used <= 0 || all[0].Added <= 0 || all[0].Tracer <= 0 || all[0].Budget != 0 {
				t.Fatalf("costs: %+v", all)
			}
			r.says("  cost: " + estimate.SlowDown(&all[0]) + "\n")
		})
	}
}

package tracer

import (
	"errors"
	"io"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// BenchmarkGrowth measures the CPU time that a program which only touches memory for the first time
// uses for a page: as it is, while its resident memory is recorded, by tracepoints and by perf
// events, and while that of another process is recorded.
func BenchmarkGrowth(b *testing.B) {
	testutil.NeedBPF(b)
	program := testutil.Build(b, "faultloop", "-O2")
	for _, name := range []string{"untraced", "traced", "events", "another"} {
		b.Run(name, func(b *testing.B) {
			var used, pages uint64
			for b.Loop() {
				child := testutil.Spawn(b, program, "100000")
				child.Ready()
				other, end := child, func() {}
				if name == "another" {
					other = testutil.Spawn(b, program, "1")
					other.Ready()
				}
				if name != "untraced" {
					end = recordGrowth(b, other.PID, name == "events")
				}
				child.Go()
				child.Succeed()
				if other != child {
					other.Go()
					other.Succeed()
				}
				end()
				report := child.Report()
				used, pages = used+report.CPUNs, pages+report.Pairs
			}
			b.ReportMetric(float64(used)/float64(pages), "cpu-ns/page")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// recordGrowth records the resident memory of a process, by perf events if events is set. The
// result waits for the end of the trace.
func recordGrowth(b *testing.B, pid int, events bool) (end func()) {
	b.Helper()
	o := plan.Options{PID: pid, Depth: plan.DefaultDepth}
	growth(&o)
	o.Testing.FaultEvents = events
	p, err := plan.New(o)
	if err != nil {
		b.Fatal(err)
	}
	tracer, err := Open(p)
	if err != nil {
		b.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		var rec trace.Record
		for {
			if err := tracer.ReadRecord(&rec); err != nil {
				read <- err
				return
			}
		}
	}()
	return func() {
		if err := <-read; !errors.Is(err, io.EOF) {
			b.Error(err)
		}
		if err := tracer.Close(); err != nil {
			b.Error(err)
		}
	}
}

package tracer

import (
	"fmt"
	"testing"
	"time"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/activity"
	"rtrace-bpf/tracer/plan"
)

// nsPerOp returns the CPU time in ns that an operation of the program pace takes while
// attach is in effect.
func nsPerOp(b *testing.B, work string, n int, attach func(pid int) (detach func())) float64 {
	b.Helper()
	child := testutil.Spawn(b, testutil.Build(b, "pace"), work, fmt.Sprint(n))
	child.Ready()
	detach := attach(child.PID)
	child.Go()
	child.Succeed()
	detach()
	var ns float64
	if _, err := fmt.Sscanf(string(child.Output()), "pace %f", &ns); err != nil {
		b.Fatal(err)
	}
	return ns
}

// BenchmarkActivity measures what recording samples, switches and system calls costs the
// recorded process (target), and another process on the same machine (other).
func BenchmarkActivity(b *testing.B) {
	testutil.NeedBPF(b)
	keep := func(e *activity.Event, r *trace.Record) bool { r.Kind = trace.KindComment; return true }
	for _, x := range []struct {
		name, work string
		n          int
		activity   activity.Options
	}{
		{"sample", "compute", 500_000, activity.Options{Sample: 10 * time.Millisecond, Record: keep}},
		{"sample-1ms", "compute", 500_000, activity.Options{Sample: time.Millisecond, Record: keep}},
		{"switches", "switches", 100_000, activity.Options{Switches: true, Record: keep}},
		{"calls", "calls", 500_000, activity.Options{Calls: activity.Descriptor, Record: keep}},
		{"files-asks", "asks", 500_000, activity.Options{Files: true, Record: keep}},
		{"files-reads", "reads", 500_000, activity.Options{Files: true, Record: keep}},
		{"calls-of-others", "calls", 500_000, activity.Options{Calls: activity.IPC, Record: keep}},
	} {
		b.Run(x.name, func(b *testing.B) {
			options := plan.Options{Depth: plan.DefaultDepth, RingSize: 64 << 20, Activity: x.activity}
			all := samples{}
			for b.Loop() {
				all.add("plain", nsPerOp(b, x.work, x.n, untraced))
				all.add("target", nsPerOp(b, x.work, x.n, traced(b, options)))
				all.add("other", nsPerOp(b, x.work, x.n, func(int) func() {
					idle := testutil.Spawn(b, testutil.Build(b, "pace"), "calls", "1")
					idle.Ready()
					detach := traced(b, options)(idle.PID)
					return func() {
						idle.Go()
						idle.Succeed()
						detach()
					}
				}))
			}
			plain := all.median("plain")
			b.ReportMetric(plain, "plain-ns/op")
			b.ReportMetric(all.median("target")/plain, "target-x")
			b.ReportMetric(all.median("target")-plain, "target-ns")
			b.ReportMetric(all.median("other")/plain, "other-x")
			b.ReportMetric(all.median("other")-plain, "other-ns")
		})
	}
}

package tracer

import (
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/plan"
)

// BenchmarkPlan measures how long planning takes with each way to record allocations, and how much
// CPU time of this process.
func BenchmarkPlan(b *testing.B) {
	testutil.NeedBPF(b)
	child := testutil.Spawn(b, testutil.Build(b, "loop"), "1", "1")
	child.Ready()
	used := func() float64 {
		var r unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
			b.Fatal(err)
		}
		return float64(r.Utime.Nano()) / 1e6
	}
	for name, ways := range plan.WayChoices() {
		b.Run(name, func(b *testing.B) {
			before := used()
			for b.Loop() {
				p, err := plan.New(plan.Options{PID: child.PID, Depth: plan.DefaultDepth, Ways: ways})
				if err != nil {
					b.Fatal(err)
				}
				if err := p.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((used()-before)/float64(b.N), "user-ms/op")
		})
	}
	child.Go()
	child.Wait()
}

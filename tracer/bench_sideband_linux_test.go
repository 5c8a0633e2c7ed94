package tracer

import (
	"fmt"
	"testing"
	"time"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

// subscribing attaches only a source of the kernel's records about mappings and names,
// the given number of times: this stands for a machine with more CPUs, where threads have
// that many more events.
func subscribing(b *testing.B, way plan.Sideband, times int) func(pid int) (detach func()) {
	return func(pid int) func() {
		s := openedSideband(b, pid, way)
		var more []*order.Subscription
		for range times - 1 {
			x, err := order.SubscribeThreads(pid, s.CPUs, s.Rings, s.Limit)
			if err != nil {
				b.Fatal(err)
			}
			more = append(more, x)
		}
		return func() {
			for _, x := range more {
				if err := x.Close(); err != nil {
					b.Error(err)
				}
			}
			if err := s.Close(); err != nil {
				b.Error(err)
			}
		}
	}
}

// BenchmarkSideband measures what the kernel's records about mappings and names add to
// the cost of tracing for the recorded process: for each thread that it makes, and for
// each switch between two of its threads.
func BenchmarkSideband(b *testing.B) {
	testutil.NeedBPF(b)
	for _, x := range []struct {
		work string
		n    int
	}{{"threads", 20_000}, {"switches", 100_000}} {
		b.Run(x.work, func(b *testing.B) {
			all := samples{}
			for b.Loop() {
				all.add("plain", nsPerOp(b, x.work, x.n, untraced))
				all.add("machine", nsPerOp(b, x.work, x.n, subscribing(b, plan.SidebandMachine, 1)))
				for _, times := range []int{1, 4, 8} {
					all.add(fmt.Sprintf("task-x%d", times), nsPerOp(b, x.work, x.n, subscribing(b, plan.SidebandTask, times)))
				}
			}
			for name := range all {
				b.ReportMetric(all.median(name), name+"-ns/op")
			}
		})
	}
}

// BenchmarkSubscribe measures how long it takes to subscribe to the records of a process
// with a given number of threads, and to end the subscription.
func BenchmarkSubscribe(b *testing.B) {
	testutil.NeedBPF(b)
	for _, threads := range []int{1, 8, 500} {
		b.Run(fmt.Sprint(threads), func(b *testing.B) {
			child := testutil.Spawn(b, testutil.Build(b, "alloc"), fmt.Sprint(threads), "1")
			child.Ready()
			all := samples{}
			for b.Loop() {
				for name, way := range map[string]plan.Sideband{"task": plan.SidebandTask, "machine": plan.SidebandMachine} {
					began := time.Now()
					s := openedSideband(b, child.PID, way)
					all.add(name+"-open", float64(time.Since(began).Microseconds()))
					all.add(name+"-events", float64(len(s.Subscription.FDs)))
					began = time.Now()
					if err := s.Close(); err != nil {
						b.Fatal(err)
					}
					all.add(name+"-close", float64(time.Since(began).Microseconds()))
				}
			}
			for name := range all {
				unit := "-us"
				if name == "task-events" || name == "machine-events" {
					unit = ""
				}
				b.ReportMetric(all.median(name), name+unit)
			}
			child.Go()
			child.Succeed()
		})
	}
}

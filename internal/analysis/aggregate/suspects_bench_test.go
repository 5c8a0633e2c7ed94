package aggregate

import (
	"testing"

	"rtrace-bpf/trace"
)

// BenchmarkSuspects judges 10,000 call sites that all grow, as a live view does once a second: in
// the second half of the first two minutes, with the verdicts of the last time.
func BenchmarkSuspects(b *testing.B) {
	const sites, from, to = 10_000, 60, 120
	for b.Loop() {
		b.StopTimer()
		e := New()
		id := uint64(0x1000)
		for s := range to {
			for i := range sites {
				id += 0x10
				e.Add(&trace.Record{Kind: trace.KindCall, Time: int64(s)*1e9 + int64(i)*1000, PID: 1, TID: 1, Call: trace.Call{
					Op: trace.OpAlloc, ID: id, Size: uint64(16 + (i*7+s*13)%50), Stack: trace.Stack{Frames: []uint64{uint64(i + 1)}, End: trace.StackComplete},
				}})
			}
			e.Add(&trace.Record{Kind: trace.KindCall, Time: int64(s)*1e9 + 5e8, PID: 1, TID: 1, Call: trace.Call{Op: trace.OpFree, ID: id}})
			if s < from {
				continue
			}
			b.StartTimer()
			all := e.Suspects(Memory)
			b.StopTimer()
			if len(all) < sites-1 { // they have no caller in common
				b.Fatalf("%d suspects", len(all))
			}
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)/(to-from), "ms/refresh")
}

package timeline_test

import (
	"fmt"

	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/trace"
)

// What is live after each call, in at most four points.
func ExampleTimeline() {
	t := timeline.New(timeline.Options{Points: 4})
	for i := range uint64(8) {
		t.Add(&trace.Record{Kind: trace.KindCall, PID: 1, Call: trace.Call{Op: trace.OpAlloc, ID: 0x1000 + i*0x100, Size: 10}})
	}
	for i := range uint64(6) {
		t.Add(&trace.Record{Kind: trace.KindCall, PID: 1, Call: trace.Call{Op: trace.OpFree, ID: 0x1000 + i*0x100}})
	}
	for _, p := range t.Points() {
		fmt.Printf("calls %d to %d: %d to %d bytes live\n", p.First, p.Last, p.Bytes.Min, p.Bytes.Max)
	}
	fmt.Println("peak:", t.Totals().PeakBytes, "bytes after call", t.Totals().PeakBytesEvent)
	// Output:
	// calls 1 to 5: 10 to 50 bytes live
	// calls 6 to 10: 60 to 80 bytes live
	// calls 11 to 14: 20 to 50 bytes live
	// peak: 80 bytes after call 8
}

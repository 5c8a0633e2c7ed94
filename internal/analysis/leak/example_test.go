package leak_test

import (
	"fmt"

	"rtrace-bpf/internal/analysis/leak"
	"rtrace-bpf/trace"
)

// The calls whose blocks are live at the end.
func ExampleNewStill() {
	f := leak.NewStill()
	for i, call := range []trace.Call{
		{Op: trace.OpAlloc, Function: "malloc", ID: 0x1000, Size: 100},
		{Op: trace.OpAlloc, Function: "malloc", ID: 0x2000, Size: 30},
		{Op: trace.OpFree, Function: "free", ID: 0x1000},
		{Op: trace.OpAlloc, Function: "calloc", ID: 0x1000, Size: 64},
	} {
		call.Seq = uint64(i + 1)
		f.Add(&trace.Record{Kind: trace.KindCall, PID: 1, Call: call})
	}
	leaks := f.Leaks()
	var r trace.Record
	for i := range leaks.Len() {
		leaks.Record(i, &r)
		fmt.Printf("call %d: %s of %d bytes\n", r.Call.Seq, r.Call.Function, r.Call.Size)
	}
	// Output:
	// call 2: malloc of 30 bytes
	// call 4: calloc of 64 bytes
}

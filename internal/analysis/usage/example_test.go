package usage_test

import (
	"fmt"

	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/trace"
)

// Blocks in two groups, small and large.
func ExampleCounter() {
	c := usage.New(func(r *trace.Record) int {
		if r.Call.Size < 100 {
			return 0
		}
		return 1
	})
	for _, call := range []trace.Call{
		{Op: trace.OpAlloc, ID: 0x1000, Size: 10},
		{Op: trace.OpAlloc, ID: 0x2000, Size: 4096},
		{Op: trace.OpFree, ID: 0x2000}, // temporary: freed before its thread allocated again
		{Op: trace.OpAlloc, ID: 0x3000, Size: 20},
	} {
		c.Add(&trace.Record{Kind: trace.KindCall, PID: 1, TID: 1, Call: call})
	}
	for n, name := range []string{"small", "large"} {
		u := c.Of(n)
		fmt.Printf("%s: %d bytes allocated, %d temporary, %d live, %d at the peak\n",
			name, u.Allocated.Bytes, u.Temporary.Bytes, u.Live.Bytes, u.AtPeak.Bytes)
	}
	// Output:
	// small: 30 bytes allocated, 0 temporary, 30 live, 10 at the peak
	// large: 4096 bytes allocated, 4096 temporary, 0 live, 4096 at the peak
}

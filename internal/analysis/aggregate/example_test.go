package aggregate_test

import (
	"fmt"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/trace"
)

// Two call sites, and what changed at them in the second interval.
func ExampleEngine() {
	const second = 1e9
	call := func(at float64, op trace.Op, id, size, site uint64) *trace.Record {
		return &trace.Record{
			Kind: trace.KindCall, PID: 1, TID: 1, Time: int64(at * second),
			Call: trace.Call{Op: op, ID: id, Size: size, Stack: trace.Stack{Frames: []uint64{site, 0x100}, End: trace.StackComplete}},
		}
	}
	e := aggregate.New()
	e.Add(call(1.0, trace.OpAlloc, 0x1000, 100, 0x500))
	e.Add(call(1.2, trace.OpAlloc, 0x2000, 50, 0x600))
	e.Interval(2 * second)
	e.Add(call(2.1, trace.OpAlloc, 0x3000, 100, 0x500))
	e.Add(call(2.3, trace.OpFree, 0x2000, 0, 0))
	e.Interval(3 * second)
	s := e.State()
	for _, x := range s.Sites {
		var place trace.Record
		e.Place(x.Number, &place)
		fmt.Printf("%#x: %d bytes live, %d allocated and %d freed in the last %v\n",
			place.Call.Stack.Frames[0], x.Live.Bytes, x.Change.Allocated.Bytes, x.Change.Freed.Bytes, s.Interval)
	}
	for _, l := range e.Detail(1).Lifetimes {
		fmt.Printf("lived for %d to %d ns: %d block\n", l.From, l.To, l.Blocks)
	}
	// Output:
	// 0x500: 200 bytes live, 100 allocated and 0 freed in the last 1s
	// 0x600: 0 bytes live, 0 allocated and 50 freed in the last 1s
	// lived for 1073741824 to 2147483647 ns: 1 block
}

package folded_test

import (
	"fmt"
	"os"

	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/report/folded"
	"rtrace-bpf/trace"
)

// A profile of a trace, as flame graphs are made of. The functions of a stack come from
// Locate, which looks up addresses; this one knows two.
func ExampleWrite() {
	functions := map[uint64]string{0x401136: "parse", 0x401180: "main"}
	b := stacks.NewBuilder(stacks.Options{
		Locate: func(dst []stacks.Location, r *trace.Record) []stacks.Location {
			for _, addr := range r.Call.Stack.Frames {
				dst = append(dst, stacks.Location{Addr: addr, Lines: []stacks.Line{{Function: functions[addr]}}})
			}
			return dst
		},
	})
	for i, frames := range [][]uint64{{0x401136, 0x401180}, {0x401180}, {0x401136, 0x401180}} {
		b.Add(&trace.Record{Kind: trace.KindCall, PID: 1, Call: trace.Call{
			Op: trace.OpAlloc, ID: 0x1000 * uint64(i+1), Size: 100, Stack: trace.Stack{Frames: frames},
		}})
	}
	if err := folded.Write(os.Stdout, b.Profile(), stacks.AllocSpace); err != nil {
		fmt.Println(err)
	}
	// Output:
	// main 100
	// main;parse 200
}

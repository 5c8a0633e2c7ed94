package sites_test

import (
	"fmt"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// Blocks by the function that called the allocator. The frames of operator new count as
// the allocator's.
func ExampleGrouper() {
	g := sites.NewGrouper(sites.Options{By: sites.ByFunction})
	for _, call := range []trace.Call{
		{Size: 100, Stack: trace.Stack{Frames: []uint64{0x401136, 0x401180}, Names: []string{"parse() at parse.c:12", "main() at main.c:30"}}},
		{Size: 50, Stack: trace.Stack{Frames: []uint64{0x401150, 0x401180}, Names: []string{"parse() at parse.c:19", "main() at main.c:30"}}},
		{Size: 8, Stack: trace.Stack{Frames: []uint64{0x7f0010, 0x401190}, Names: []string{"operator new(unsigned long)", "main() at main.c:31"}}},
	} {
		call.Op = trace.OpAlloc
		g.Add(&trace.Record{Kind: trace.KindCall, PID: 1, Call: call})
	}
	for _, group := range g.Groups() {
		fmt.Printf("%s: blocks %d, bytes %d\n", group.Frames[0].Function, group.Blocks, group.Bytes)
	}
	// Output:
	// parse: blocks 2, bytes 150
	// main: blocks 1, bytes 8
}

// The parts of a frame's text.
func ExampleParsePlace() {
	p := sites.ParsePlace("parse() at parse.c:12")
	fmt.Println(p.Function, p.File, p.Line)
	// Output:
	// parse parse.c 12
}

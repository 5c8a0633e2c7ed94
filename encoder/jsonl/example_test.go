package jsonl_test

import (
	"fmt"
	"os"

	"rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/trace"
)

// One line for each record, with the fields that are not zero.
func ExampleNew() {
	w := jsonl.New(os.Stdout)
	for _, r := range []*trace.Record{
		{Kind: trace.KindHeader, Header: trace.Header{Arch: "x86_64", Clock: trace.ClockMonotonic}},
		{Kind: trace.KindCall, Time: 5e9, PID: 42, Call: trace.Call{
			Seq: 1, Op: trace.OpAlloc, Function: "malloc", Size: 100, ID: 0x1000,
			Stack: trace.Stack{Frames: []uint64{0x401136, 0x401180}, End: trace.StackComplete},
		}},
	} {
		if err := w.WriteRecord(r); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"format":"rtrace-jsonl","version":1}
	// {"kind":"header","arch":"x86_64","clock":"monotonic"}
	// {"kind":"call","time":5000000000,"pid":42,"seq":1,"op":"alloc","function":"malloc","id":"0x1000","size":100,"stack_end":"complete","stack":["0x401136","0x401180"]}
}

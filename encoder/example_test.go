package encoder_test

import (
	"fmt"
	"strings"

	"rtrace-bpf/encoder"
	"rtrace-bpf/trace"
)

// A format selected by its name. What it has no place for is left out without an error.
func ExampleNew() {
	var out strings.Builder
	w, err := encoder.New("text", &out, encoder.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range []*trace.Record{
		{Kind: trace.KindProcess, PID: 42, Process: trace.Process{Name: "./demo", Depth: 10}},
		{Kind: trace.KindThread, PID: 42, TID: 42, Thread: trace.Thread{Name: "main"}}, // the format has no threads
		{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, Function: "malloc", Size: 100, ID: 0x1000}},
		{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpFree, Function: "free", ID: 0x1000}},
	} {
		if err := w.WriteRecord(r); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(out.String()) {
		fmt.Println(strings.TrimSpace(line))
	}
	// Output:
	// version=2.0, process=./demo, pid=42, backtrace depth=10,
	// 1. malloc(100) = 0x1000
	//
	// 2. free(0x1000)
}

// The formats that a user can choose from.
func ExampleFormats() {
	for _, f := range encoder.Formats() {
		fmt.Printf("%s %q\n", f.Name, f.Suffix)
	}
	// Output:
	// sprtrace ""
	// text ".txt"
	// jsonl ".jsonl"
	// mtrc ".mtrc"
	// swap ".swap"
	// nettrace ".nettrace"
}

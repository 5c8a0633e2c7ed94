package filter_test

import (
	"errors"
	"fmt"
	"io"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/trace"
)

// What is still live at the end of a trace.
func ExampleNewStill() {
	in, err := decoder.OpenFile("../../testdata/corpus/sp-rtrace/c-leaks.rtrace", decoder.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = in.Close() }() // only read

	leaks := filter.NewStill(in)
	var r trace.Record
	for err = leaks.ReadRecord(&r); err == nil; err = leaks.ReadRecord(&r) {
		if r.Kind == trace.KindCall {
			fmt.Println(r.Call.Function, r.Call.Size)
		}
	}
	if !errors.Is(err, io.EOF) {
		fmt.Println(err)
	}
	// Output:
	// malloc 100
	// malloc 101
	// malloc 102
	// calloc 100
	// posix_memalign 256
	// malloc 0
	// malloc 6
}

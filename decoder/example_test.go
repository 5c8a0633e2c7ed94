package decoder_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"rtrace-bpf/decoder"
	"rtrace-bpf/trace"
)

// A file of any format, with its side file if it has one.
func ExampleOpenFile() {
	in, err := decoder.OpenFile("../testdata/corpus/sp-rtrace/c-leaks.rtrace", decoder.Options{
		Warn: func(err error) { fmt.Println("warning:", err) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = in.Close() }() // only read

	var (
		rec   trace.Record
		calls = map[trace.Op]int{}
	)
	for err = in.ReadRecord(&rec); err == nil; err = in.ReadRecord(&rec) {
		if rec.Kind == trace.KindCall {
			calls[rec.Call.Op]++
		}
	}
	fmt.Printf("%s, dialect %s: %d allocations, %d frees, then %v\n",
		in.Format, in.Stats().Version, calls[trace.OpAlloc], calls[trace.OpFree], err)
	// Output:
	// sprtrace, dialect 2.0: 16 allocations, 10 frees, then EOF
}

// A trace that is cut yields its whole records and then an error.
func ExampleOpen_truncated() {
	data, err := os.ReadFile("../testdata/corpus/sp-rtrace/c-leaks.rtrace")
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := decoder.Open(bytes.NewReader(data[:1000]), decoder.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = in.Close() }() // only read

	records, err := trace.Load(in)
	fmt.Println(len(records), "records")
	if errors.Is(err, trace.ErrTruncated) {
		fmt.Println(err)
	}
	// Output:
	// 17 records
	// sp-rtrace: offset 968: input ends in the middle of a record
}

package sprtrace_test

import (
	"errors"
	"fmt"
	"io"
	"os"

	"rtrace-bpf/decoder/sprtrace"
	"rtrace-bpf/trace"
)

func ExampleNew() {
	f, err := os.Open("../../testdata/corpus/sp-rtrace/c-leaks.rtrace")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = f.Close() }()
	d, err := sprtrace.New(f, sprtrace.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var r trace.Record
	allocated := uint64(0)
	for {
		if err := d.ReadRecord(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			fmt.Println(err)
			return
		}
		if r.Kind == trace.KindCall && r.Call.Op == trace.OpAlloc {
			allocated += r.Call.Size
		}
	}
	fmt.Println(d.Stats().Calls, "calls allocate", allocated, "bytes")
	// Output: 26 calls allocate 100929 bytes
}

func ExampleWalker() {
	f, err := os.Open("../../testdata/corpus/sp-rtrace/c-leaks.rtrace")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = f.Close() }()
	w, err := sprtrace.NewWalker(f, sprtrace.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var p sprtrace.Packet
	for range 4 {
		if err := w.Next(&p); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%#x %s, %d bytes of data\n", p.Offset, p.Name, len(p.Data))
	}
	// Output:
	// 0x0 , 0 bytes of data
	// 0x10 OCFG, 28 bytes of data
	// 0x34 PINF, 32 bytes of data
	// 0x5c MINF, 16 bytes of data
}

package sprtrace_test

import (
	"bytes"
	"fmt"
	"os"

	decoder "rtrace-bpf/decoder/sprtrace"
	"rtrace-bpf/encoder/sprtrace"
	"rtrace-bpf/trace"
)

func ExampleNew() {
	var out bytes.Buffer
	e, err := sprtrace.New(&out, sprtrace.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range []*trace.Record{
		{Kind: trace.KindProcess, PID: 42, Process: trace.Process{Name: "./demo", Depth: 10}},
		{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory", Desc: "memory allocation in bytes"}},
		{Kind: trace.KindCall, Time: 5e9, Call: trace.Call{
			Op: trace.OpAlloc, Function: "malloc", Resource: 1, Size: 100, ID: 0x1000,
			Stack: trace.Stack{Frames: []uint64{0x401136, 0x401180}},
		}},
	} {
		if err := e.WriteRecord(r); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := e.Close(); err != nil {
		fmt.Println(err)
		return
	}
	if err := decoder.Dump(os.Stdout, &out, decoder.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 00000000    14 HANDSHAKE version=2.0 arch="x86_64" endian=0 pointer=8
	// 00000000     0 LAYOUT type-first little-endian 8-byte-pointers
	// 00000010    24 PINF pid=42 secs=0 usecs=0 depth=10 name="./demo"
	// 00000030    44 RESR id=1 flags=0x0 type="memory" desc="memory allocation in bytes"
	// 00000064    36 CALL resource=1 context=0x0 timestamp=5000 type=2 name="malloc" size=100 id=0x1000
	// 00000090    20 BTRC frames=[0x401136 0x401180]
}

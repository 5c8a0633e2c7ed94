package jsonl_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"

	"rtrace-bpf/decoder/jsonl"
	"rtrace-bpf/trace"
)

func manyCalls(n int) []*trace.Record {
	var all []*trace.Record
	for i := range n {
		all = append(all, &trace.Record{Kind: trace.KindCall, Time: 123456789012345, PID: 4711, TID: 4712, CPU: 2, Call: trace.Call{
			Seq: uint64(i), Op: trace.OpAlloc, Function: "malloc", Resource: 1, ID: 0x55c9a22662a0, Size: 100,
			Stack: trace.Stack{Frames: []uint64{
				0x55c9757eb1b8, 0x55c9757eb1f1, 0x55c9757eb2bb, 0x7f10d7f2424a,
				0x7f10d7f24305, 0x55c9757eb0e1, 0x55c9757eb0e2, 0x55c9757eb0e3,
			}, Names: nil, End: trace.StackComplete},
		}})
	}
	return all
}

func drain(t testing.TB, r trace.Reader) (n int) {
	var rec trace.Record
	for {
		err := r.ReadRecord(&rec)
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
}

// The memory of a reader does not grow with the number of records.
func TestMemoryPerRecord(t *testing.T) {
	data := encode(t, manyCalls(20000)...)
	r := jsonl.New(bytes.NewReader(data), jsonl.Options{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if n := drain(t, r); n != 20000 {
		t.Errorf("%d records", n)
	}
	runtime.ReadMemStats(&after)
	if n := after.Mallocs - before.Mallocs; n > 200 {
		t.Errorf("%d allocations for 20000 records", n)
	}
}

func BenchmarkReadRecord(b *testing.B) {
	const n = 10000
	data := encode(b, manyCalls(n)...)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if got := drain(b, jsonl.New(bytes.NewReader(data), jsonl.Options{})); got != n {
			b.Fatalf("%d records", got)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
}

package sprtrace

import (
	"io"
	"testing"

	"rtrace-bpf/trace"
)

// benchCall returns a call with the given number of frames.
func benchCall(frames int) *trace.Record {
	r := &trace.Record{Kind: trace.KindCall, Time: 1e9, PID: 1}
	r.Call = trace.Call{Op: trace.OpAlloc, Function: "malloc", Resource: 1, Size: 100}
	for i := range frames {
		r.Call.Stack.Frames = append(r.Call.Stack.Frames, 0x7f10d7f24000+uint64(i)*64)
	}
	return r
}

func BenchmarkEncode(b *testing.B) {
	e, err := New(io.Discard, Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := benchCall(8)
	if err := e.WriteRecord(r); err != nil {
		b.Fatal(err)
	}
	first := e.Stats().Bytes
	if err := e.WriteRecord(r); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(e.Stats().Bytes - first)
	b.ReportAllocs()
	for b.Loop() {
		r.Time += 100
		r.Call.ID += 32
		if err := e.WriteRecord(r); err != nil {
			b.Fatal(err)
		}
	}
}

// Encoding allocates nothing per record.
func TestEncodeDoesNotAllocate(t *testing.T) {
	for _, dialect := range []Dialect{Wire, Document} {
		e, err := New(io.Discard, Options{Dialect: dialect})
		if err != nil {
			t.Fatal(err)
		}
		r := benchCall(253)
		r.Call.Op = trace.OpMove
		r.Call.Args = []trace.Arg{{Name: "n", Value: "1"}}
		if n := testing.AllocsPerRun(1000, func() {
			if err := e.WriteRecord(r); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("dialect %d: %v allocations per record", dialect, n)
		}
		if cap(e.buf) != bufferSize+maxRecord {
			t.Errorf("dialect %d: the buffer grew to %d bytes", dialect, cap(e.buf))
		}
	}
}

package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"rtrace-bpf/decoder/jsonl"
	jsonlencoder "rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/trace"
)

// calls generates the calls of a tracer: threads that allocate and free, with
// the given number of stacks of the given depth, all in one record.
type calls struct {
	record trace.Record
	stacks [][]uint64
}

func newCalls(stacks, depth int) *calls {
	c := &calls{record: trace.Record{Kind: trace.KindCall, PID: 4711, Call: trace.Call{Resource: 1}}}
	for i := range stacks {
		frames := make([]uint64, depth)
		for j := range frames {
			frames[j] = 0x55c9757eb1b8 + uint64(i*i*j*64+i)
		}
		c.stacks = append(c.stacks, frames)
	}
	return c
}

// number returns the ith call.
func (c *calls) number(i int) *trace.Record {
	r := &c.record
	r.Time, r.TID, r.CPU = 123456789012345+int64(i)*900, 4712+int32(i/7&3), 2+int32(i/64&1)
	r.Call.Seq, r.Call.ID = uint64(i+1), 0x55c9a22662a0+uint64(i/2*i&4095)*16
	if i&1 == 0 {
		r.Call.Op, r.Call.Function, r.Call.Size = trace.OpAlloc, "malloc", uint64(16+i*i&4095)
		r.Call.Stack = trace.Stack{Frames: c.stacks[i*31%len(c.stacks)], End: trace.StackComplete}
	} else {
		r.Call.Op, r.Call.Function, r.Call.Size = trace.OpFree, "free", 0
		r.Call.Stack = trace.Stack{}
	}
	return r
}

var shapes = []struct{ stacks, depth int }{{100, 8}, {5000, 16}, {5000, 40}}

func TestNoAllocations(t *testing.T) {
	const n = 20000
	calls := newCalls(1000, 16)
	e := newEncoder(tableBytes)
	var out bytes.Buffer
	write := func() {
		for i := range n {
			_ = e.record(calls.number(i))
			if e.full() {
				out.Write(e.take())
			}
		}
	}
	write()
	out.Grow(out.Len() * 8)
	if got := testing.AllocsPerRun(5, write); got != 0 {
		t.Errorf("%v allocations to write %d calls", got, n)
	}
	data := append(out.Bytes(), e.take()...)
	r := newReader(&source{rest: data})
	var rec trace.Record
	read := func() {
		for range n {
			if err := r.ReadRecord(&rec); err != nil {
				t.Fatal(err)
			}
		}
	}
	read()
	if got := testing.AllocsPerRun(5, read); got != 0 {
		t.Errorf("%v allocations to read %d calls", got, n)
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, s := range shapes {
		calls := newCalls(s.stacks, s.depth)
		b.Run(fmt.Sprintf("spool/depth=%d", s.depth), func(b *testing.B) {
			b.ReportAllocs()
			e := newEncoder(tableBytes)
			bytes, i := 0, 0
			for b.Loop() {
				if err := e.record(calls.number(i)); err != nil {
					b.Fatal(err)
				}
				i++
				if e.full() {
					bytes += len(e.take())
				}
			}
			b.ReportMetric(float64(bytes)/float64(b.N), "bytes/call")
		})
		b.Run(fmt.Sprintf("jsonl/depth=%d", s.depth), func(b *testing.B) {
			b.ReportAllocs()
			w := jsonlencoder.New(io.Discard)
			i := 0
			for b.Loop() {
				if err := w.WriteRecord(calls.number(i)); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

func drain(b *testing.B, r trace.Reader, n int) {
	var rec trace.Record
	for range n {
		if err := r.ReadRecord(&rec); err != nil {
			b.Fatal(err)
		}
	}
	if err := r.ReadRecord(&rec); !errors.Is(err, io.EOF) {
		b.Fatal(err)
	}
}

func BenchmarkRead(b *testing.B) {
	const n = 100_000
	for _, s := range shapes {
		calls := newCalls(s.stacks, s.depth)
		var data []byte
		e := newEncoder(tableBytes)
		for i := range n {
			if err := e.record(calls.number(i)); err != nil {
				b.Fatal(err)
			}
			if e.full() || i == n-1 {
				data = append(data, e.take()...)
			}
		}
		b.Run(fmt.Sprintf("spool/depth=%d", s.depth), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				drain(b, newReader(&source{rest: data}), n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/call")
		})
		var text bytes.Buffer
		w := jsonlencoder.New(&text)
		for i := range n {
			if err := w.WriteRecord(calls.number(i)); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("jsonl/depth=%d", s.depth), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				drain(b, jsonl.New(bytes.NewReader(text.Bytes()), jsonl.Options{}), n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/call")
		})
	}
}

package swap_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"rtrace-bpf/decoder/swap"
	encoder "rtrace-bpf/encoder/swap"
	"rtrace-bpf/trace"
)

// stream returns the messages of n allocations with depth frames of stack, each freed
// 64 allocations later, as a process makes them.
func stream(tb testing.TB, n, depth int) []byte {
	tb.Helper()
	var out bytes.Buffer
	w, err := encoder.New(&out, encoder.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	frames := make([]uint64, depth)
	for i := range frames {
		frames[i] = 0x7f0011223344 + uint64(i)*0x1000
	}
	write := func(op trace.Op, function string, i int) {
		r := trace.Record{Kind: trace.KindCall, Time: 1.7e18 + int64(i)*1000, PID: 7, TID: int32(7 + i%4)}
		r.Call = trace.Call{Op: op, Function: function, ID: 0x5581000012a0 + uint64(i%97)*48, Size: uint64(i % 1000)}
		r.Call.Stack = trace.Stack{Frames: frames, End: trace.StackComplete}
		if err := w.WriteRecord(&r); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.WriteRecord(&trace.Record{Kind: trace.KindHeader, Header: trace.Header{Clock: trace.ClockWall}}); err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		write(trace.OpAlloc, "malloc", i)
		if i >= 64 {
			write(trace.OpFree, "free", i-64)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func BenchmarkReader(b *testing.B) {
	for _, tt := range []struct {
		name  string
		depth int
	}{{"depth=1", 1}, {"depth=16", 16}} {
		b.Run(tt.name, func(b *testing.B) {
			data := stream(b, 100_000, tt.depth)
			r := bytes.NewReader(data)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			records := 0
			for b.Loop() {
				r.Reset(data)
				d, err := swap.NewReader(r, swap.Options{})
				if err != nil {
					b.Fatal(err)
				}
				var rec trace.Record
				for err = d.ReadRecord(&rec); err == nil; err = d.ReadRecord(&rec) {
					records++
				}
				if !errors.Is(err, io.EOF) {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(records)/b.Elapsed().Seconds()/1e6, "Mprobes/s")
		})
	}
}

// A steady stream causes no allocations.
func TestNoAllocation(t *testing.T) {
	for _, depth := range []int{1, 16} {
		d, err := swap.NewReader(bytes.NewReader(stream(t, 40_000, depth)), swap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var rec trace.Record
		if n := testing.AllocsPerRun(60_000, func() {
			if err := d.ReadRecord(&rec); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations per record with %d frames", n, depth)
		}
	}
}

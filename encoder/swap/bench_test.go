package swap_test

import (
	"io"
	"testing"

	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/trace"
)

func BenchmarkWriter(b *testing.B) {
	for _, tt := range []struct {
		name  string
		depth int
		opts  swap.Options
	}{
		{"depth=1", 1, swap.Options{}},
		{"depth=16", 16, swap.Options{}},
		{"depth=16/no-stacks", 16, swap.Options{NoStacks: true}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			var records []trace.Record
			for i := range 1000 {
				r := trace.Record{Kind: trace.KindCall, Time: 1.7e18 + int64(i)*1000, PID: 7, TID: int32(7 + i%4)}
				r.Call = trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: 0x5581000012a0 + uint64(i)*48, Size: uint64(i)}
				if i%2 == 1 {
					r.Call.Op, r.Call.Function = trace.OpFree, "free"
				}
				r.Call.Stack.Frames = make([]uint64, tt.depth)
				records = append(records, r)
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				w, err := swap.New(io.Discard, tt.opts)
				if err != nil {
					b.Fatal(err)
				}
				for i := range 100 * len(records) {
					if err := w.WriteRecord(&records[i%len(records)]); err != nil {
						b.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
				n += 100 * len(records)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mprobes/s")
		})
	}
}

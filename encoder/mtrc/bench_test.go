package mtrc_test

import (
	"fmt"
	"io"
	"testing"

	"rtrace-bpf/encoder/mtrc"
	"rtrace-bpf/trace"
)

// calls returns n allocations, each freed 64 allocations later or at the end, as a
// process makes them. They come from names functions; 0 means no names.
func calls(n, names int, indexed bool) []trace.Record {
	var all []trace.Record
	call := func(op trace.Op, i int) {
		r := trace.Record{Kind: trace.KindCall, PID: 7, TID: int32(7 + i%4)}
		r.Call = trace.Call{Op: op, Function: "malloc", Resource: 1, ID: 0x7f0012340010 + uint64(i%97)*4096}
		c := &r.Call
		if op == trace.OpAlloc {
			c.Size = uint64(i % 1000)
		}
		if indexed {
			c.Index = uint64(i + 1)
		}
		if names > 0 {
			c.Caller = trace.Caller{Function: fmt.Sprintf("_ZN7project%dfunctionEv", i%names), File: fmt.Sprintf("src/part%d.cc", i%names/8), Line: uint64(i % 5000)}
		}
		all = append(all, r)
	}
	for i := range n + 64 {
		if i < n {
			call(trace.OpAlloc, i)
		}
		if i >= 64 {
			call(trace.OpFree, i-64)
		}
	}
	return all
}

func BenchmarkWriter(b *testing.B) {
	for _, tt := range []struct {
		name    string
		names   int
		indexed bool
		opts    mtrc.Options
	}{
		{"names=0", 0, false, mtrc.Options{}},
		{"names=30", 30, false, mtrc.Options{}},
		{"names=300", 300, false, mtrc.Options{}},
		{"names=30/indexed", 30, true, mtrc.Options{}},
		{"names=30/legacy", 30, false, mtrc.Options{Legacy: true}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			records := calls(1000, tt.names, tt.indexed) // few, so that they stay in the cache like those of a reader
			b.ReportAllocs()
			events := 0
			for b.Loop() {
				w, err := mtrc.New(io.Discard, tt.opts)
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
				events += 100 * len(records)
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

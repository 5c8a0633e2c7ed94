package heapview

import (
	"fmt"
	"math/rand/v2"

	"rtrace-bpf/internal/analysis/heapmap"
	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/trace"
)

// world is a random trace with the map and the curve of it.
type world struct {
	m     *heapmap.Map
	curve *timeline.Timeline
	// levels are the live blocks and bytes after each event.
	levels []heapmap.Level
}

// The random traces use a heap and an arena far above it, whose offsets do not
// fit into 32 bits.
const (
	low  = uint64(0x5555_5555_0000)
	high = uint64(0x7fff_0000_0000)
)

// build returns a trace of n events whose blocks do not overlap. The state
// after a third of them is exact. lasting makes blocks that are never freed.
func build(seed uint64, n int, lasting bool) *world {
	rng := rand.New(rand.NewPCG(seed, 5))
	w := &world{m: heapmap.New(heapmap.Options{At: uint64(n / 3)}), curve: timeline.New(timeline.Options{}), levels: []heapmap.Level{{}}}
	add := func(r *trace.Record) {
		w.m.Add(r)
		w.curve.Add(r)
	}
	add(&trace.Record{Kind: trace.KindHeapGrow, HeapGrow: trace.HeapGrow{Address: low, Size: 64 << 10}})
	add(&trace.Record{Kind: trace.KindHeapGrow, HeapGrow: trace.HeapGrow{Address: high, Size: 20000}})
	add(&trace.Record{Kind: trace.KindHeapGrow, HeapGrow: trace.HeapGrow{Address: high + 20000, Size: 3000, Internal: true}})
	live := map[uint64]uint64{}
	var bytes uint64
	for i := range n {
		id := low + 64*rng.Uint64N(900)
		if rng.IntN(3) == 0 {
			id = high + 16 + 256*rng.Uint64N(64)
		}
		if lasting {
			id = low + 64*uint64(i)
		}
		r := &trace.Record{Kind: trace.KindCall, TID: 100 + int32(rng.IntN(3))}
		r.Call = trace.Call{ID: id, Op: trace.OpAlloc, Function: "malloc", Size: rng.Uint64N(60)}
		r.Call.Caller = trace.Caller{Function: fmt.Sprintf("caller%d<%d>", rng.IntN(12), rng.IntN(3)), File: "a.c", Line: 7}
		if size, ok := live[id]; ok {
			r.Call.Op, r.Call.Size = trace.OpFree, 0
			bytes -= size
			delete(live, id)
		} else {
			live[id] = r.Call.Size
			bytes += r.Call.Size
		}
		add(r)
		w.levels = append(w.levels, heapmap.Level{Event: uint64(i + 1), Blocks: uint64(len(live)), Bytes: bytes})
	}
	return w
}

func (w *world) options(event uint64) Options {
	return Options{Name: `prog "<1>"`, Event: event, Regions: w.m.Regions(16)}
}

package aggregate_test

import (
	"runtime"
	"testing"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/trace"
)

// load makes calls: each allocation is followed by the free of the block that
// was allocated blocks allocations earlier, so that as many are live.
type load struct {
	blocks uint64
	stacks [][]uint64
	n      uint64
	r      trace.Record
}

const depth = 20

func newLoad(blocks, stacks int) *load {
	l := &load{blocks: uint64(blocks), stacks: make([][]uint64, stacks)}
	for i := range l.stacks {
		l.stacks[i] = make([]uint64, depth)
		for k := range l.stacks[i] {
			l.stacks[i][k] = 0x400000 + uint64(i%(10*(k+1)))<<8 + uint64(k) // outer frames are shared
		}
		l.stacks[i][0] = 0x500000 + uint64(i)<<4
	}
	l.r = trace.Record{Kind: trace.KindCall, PID: 1, Time: 1e9}
	return l
}

// run feeds e with two calls for each of n blocks.
func (l *load) run(e interface{ Add(r *trace.Record) }, n int) {
	c := &l.r.Call
	for range n {
		x := l.n * 0x9e3779b97f4a7c15
		l.r.TID = 1 + int32(x>>40%4)
		*c = trace.Call{Op: trace.OpAlloc, ID: 0x7f0000000000 + l.n<<5, Size: 16 << (x >> 50 % 8)}
		c.Stack.Frames, c.Stack.End = l.stacks[x>>32%uint64(len(l.stacks))], trace.StackComplete
		e.Add(&l.r)
		if l.n >= l.blocks {
			*c = trace.Call{Op: trace.OpFree, ID: 0x7f0000000000 + (l.n-l.blocks)<<5}
			e.Add(&l.r)
		}
		l.n++
		l.r.Time += 5000
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMemory: memory grows with live blocks and stacks, not with calls.
func TestMemory(t *testing.T) {
	const blocks, stacks = 50_000, 1000
	before := heap()
	l, e := newLoad(blocks, stacks), aggregate.New()
	own := heap() - before
	l.run(e, 200_000)
	small := heap() - before - own
	for range 8 {
		l.run(e, 100_000)
		e.Interval(l.r.Time)
		e.State()
	}
	large := heap() - before - own
	t.Logf("%.1f bytes per live block after 350,000 calls, %.1f after 1,950,000", float64(small)/blocks, float64(large)/blocks)
	// A block takes 64 bytes; a site less than 2 KiB.
	if limit := uint64(blocks*80 + stacks*4096); large > limit {
		t.Errorf("%d bytes, more than %d", large, limit)
	}
	if large > small+small/10 {
		t.Errorf("%d bytes after 350,000 calls, %d after 1,950,000", small, large)
	}
	runtime.KeepAlive(l)
	runtime.KeepAlive(e)
}

package heapmap_test

import (
	"runtime"
	"testing"

	"rtrace-bpf/internal/analysis/heapmap"
	"rtrace-bpf/trace"
)

// play adds n calls of a program to a map. A few blocks stay; the others are
// short-lived.
func play(m *heapmap.Map, n int) {
	var r trace.Record
	r.Kind = trace.KindCall
	c := &r.Call
	c.Function, c.Caller.Function = "malloc", "f"
	at := uint64(0x5555_0000_0000)
	var ring [512]uint64
	for i := range n {
		k := i % len(ring)
		c.Op, c.ID, c.Size = trace.OpFree, ring[k], 0
		if ring[k] == 0 || i%1024 == 0 {
			at += 64 // never the same address
			ring[k] = at
			c.Op, c.ID, c.Size = trace.OpAlloc, at, 48
		} else {
			ring[k] = 0
		}
		m.Add(&r)
	}
}

// Memory is bounded by the live blocks and the limits, not by the events. No
// address is used twice here, so each block would be one more range.
func TestMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m := heapmap.New(heapmap.Options{Limit: 1 << 12})
	play(m, 3<<20)
	runtime.GC()
	runtime.ReadMemStats(&after)
	// Ranges take 24 bytes, twice because of pending ones, plus slack; 1.5
	// million blocks of 40 bytes would be 60 MB.
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 20<<20 {
		t.Errorf("%d bytes for 3 million events", grown)
	}
	if m.Step() == 1 || m.Events() != 3<<20 {
		t.Errorf("step %d, %d events", m.Step(), m.Events())
	}
	runtime.KeepAlive(m)
}

func BenchmarkAdd(b *testing.B) {
	m := heapmap.New(heapmap.Options{})
	b.ReportAllocs()
	b.ResetTimer()
	play(m, b.N)
}

func BenchmarkPaint(b *testing.B) {
	m := heapmap.New(heapmap.Options{})
	play(m, 1<<20)
	g := heapmap.Fit(m.Regions(9)[0], 1<<17)
	b.ReportAllocs()
	for b.Loop() {
		m.Paint(g, 1<<19)
	}
}

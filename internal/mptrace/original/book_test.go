package original_test

import (
	"math/rand/v2"
	"testing"

	"rtrace-bpf/internal/mptrace"
	"rtrace-bpf/internal/mptrace/original"
	wire "rtrace-bpf/internal/wire/mtrc"
)

func TestComplaints(t *testing.T) {
	b := original.NewBook(original.Fixed64)
	for i, tt := range []struct {
		e         wire.Event
		complaint string
		live      mptrace.Sum
		life      uint64
	}{
		{wire.Event{Kind: wire.Free, Index: 3}, "Unknown allocation index `3'", mptrace.Sum{}, 0},
		{wire.Event{Kind: wire.Alloc, Index: 3, Size: 10}, "", mptrace.Sum{Count: 1, Bytes: 10}, 0},
		{wire.Event{Kind: wire.Alloc, Index: 3, Size: 20}, "Allocation index `3' has been allocated twice without being freed", mptrace.Sum{Count: 2, Bytes: 30}, 0},
		{wire.Event{Kind: wire.Free, Index: 3}, "", mptrace.Sum{Count: 1, Bytes: 10}, 2},
		{wire.Event{Kind: wire.Realloc, Index: 3, Size: 25}, "Allocation index `3' has already been freed", mptrace.Sum{Count: 1, Bytes: 15}, 0},
		{wire.Event{Kind: wire.Free, Index: 3}, "Allocation index `3' has already been freed", mptrace.Sum{Count: 0, Bytes: 1<<64 - 10}, 4},
		{wire.Event{Kind: wire.Free, Index: 3}, "Allocation index `3' has already been freed", mptrace.Sum{Count: 1<<64 - 1, Bytes: 1<<64 - 35}, 5},
		{wire.Event{Kind: wire.Alloc, Index: 3, Size: 1}, "", mptrace.Sum{Count: 0, Bytes: 1<<64 - 34}, 0},
		{wire.Event{Kind: wire.Free, Index: 3}, "", mptrace.Sum{Count: 1<<64 - 1, Bytes: 1<<64 - 35}, 7},
	} {
		var n mptrace.Entry
		b.Add(&tt.e, &n)
		if got := original.Complaint(&n); got != tt.complaint || n.Live != tt.live || n.Life != tt.life {
			t.Errorf("event %d: %q, %+v, life %d; want %q, %+v, %d", i+1, got, n.Live, n.Life, tt.complaint, tt.live, tt.life)
		}
	}
	if got := b.Totals().Peak; got != (mptrace.Sum{Count: 2, Bytes: 1<<64 - 34}) {
		t.Errorf("peak %+v", got)
	}
}

// The tool of 32 bits counts in 32 bits.
func TestWords(t *testing.T) {
	b := original.NewBook(original.AsIs32)
	for i := range uint64(3) {
		b.Add(&wire.Event{Kind: wire.Alloc, Index: i, Size: 1<<31 + 5}, new(mptrace.Entry))
	}
	if got, want := b.Totals().Live, (mptrace.Sum{Count: 3, Bytes: 1<<31 + 15}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The history finds the same blocks as a map, for indices in any order.
func TestHistory(t *testing.T) {
	for _, tt := range []struct {
		name  string
		index func(r *rand.Rand, i uint64) uint64
	}{
		{"dense", func(_ *rand.Rand, i uint64) uint64 { return i }},
		{"gaps", func(r *rand.Rand, i uint64) uint64 { return i*i + r.Uint64N(50) }},
		{"anyhow", func(r *rand.Rand, _ uint64) uint64 { return r.Uint64N(10_000) }},
		{"anywhere", func(r *rand.Rand, _ uint64) uint64 { return 1 << r.UintN(64) * r.Uint64N(9) }},
	} {
		r := rand.New(rand.NewPCG(5, 6))
		b := original.NewBook(original.Fixed64)
		sizes := map[uint64]uint64{}
		var indices []uint64
		for i := range uint64(30_000) {
			index := tt.index(r, i)
			size := r.Uint64()
			b.Add(&wire.Event{Kind: wire.Alloc, Index: index, Size: size}, new(mptrace.Entry))
			sizes[index] = size
			indices = append(indices, index)
			asked := indices[r.IntN(len(indices))]
			if r.UintN(4) == 0 {
				asked = r.Uint64() >> r.UintN(64)
			}
			var n mptrace.Entry
			b.Add(&wire.Event{Kind: wire.Free, Index: asked}, &n)
			want, known := sizes[asked]
			if n.Done != known || known && n.Size != want {
				t.Fatalf("%s: index %d: %+v; known %v, size %d", tt.name, asked, n, known, want)
			}
		}
	}
}

func BenchmarkBook(b *testing.B) {
	b.ReportAllocs()
	const n = 1_000_000
	for b.Loop() {
		book := original.NewBook(original.Fixed64)
		var entry mptrace.Entry
		for i := range uint64(n) {
			book.Add(&wire.Event{Kind: wire.Alloc, Index: 3 * i, Size: 10}, &entry)
			if i >= 500 {
				book.Add(&wire.Event{Kind: wire.Free, Index: 3 * (i - i%500)}, &entry)
			}
		}
	}
	b.ReportMetric(2*n*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}

package mptrace_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/mptrace"
	wire "rtrace-bpf/internal/wire/mtrc"
)

func alloc(index, address, size uint64) wire.Event {
	return wire.Event{Kind: wire.Alloc, Index: index, Address: address, Size: size}
}

func realloc(index, address, size uint64) wire.Event {
	return wire.Event{Kind: wire.Realloc, Index: index, Address: address, Size: size}
}

func free(index uint64) wire.Event { return wire.Event{Kind: wire.Free, Index: index} }

// entries counts events and returns their entries.
func entries(b *mptrace.Book, events ...wire.Event) []mptrace.Entry {
	all := make([]mptrace.Entry, len(events))
	for i := range events {
		b.Add(&events[i], &all[i])
	}
	return all
}

func TestBook(t *testing.T) {
	heap := wire.Event{Kind: wire.Heap, Address: 0x1000, Size: 4096}
	internal := wire.Event{Kind: wire.Internal, Address: 0x9000, Size: 16384}
	sum := func(count, bytes uint64) mptrace.Sum { return mptrace.Sum{Count: count, Bytes: bytes} }
	for _, tt := range []struct {
		name   string
		events []wire.Event
		want   mptrace.Totals
		last   mptrace.Entry // without Kind, Index, Live
	}{
		{"nothing", nil, mptrace.Totals{}, mptrace.Entry{}},
		{
			"memory",
			[]wire.Event{heap, internal, heap},
			mptrace.Totals{Reserved: sum(2, 8192), Internal: sum(1, 16384)},
			mptrace.Entry{Done: true, Address: 0x1000, Size: 4096},
		},
		{
			"life",
			[]wire.Event{alloc(7, 16, 100), heap, alloc(8, 32, 5), free(7)},
			mptrace.Totals{
				Events: 3, Allocated: sum(2, 105), Freed: sum(1, 100), Live: sum(1, 5), Peak: sum(2, 105), Reserved: sum(1, 4096),
				Smallest: 5, Largest: 100,
			},
			mptrace.Entry{Done: true, Number: 3, Address: 16, Size: 100, Life: 2},
		},
		{
			"realloc counts twice and goes on living",
			[]wire.Event{alloc(1, 16, 100), realloc(1, 64, 10), free(1)},
			mptrace.Totals{Events: 3, Allocated: sum(2, 110), Freed: sum(2, 110), Peak: sum(1, 100), Smallest: 10, Largest: 100},
			mptrace.Entry{Done: true, Number: 3, Address: 64, Size: 10, Life: 2},
		},
		{
			"the peaks are apart",
			[]wire.Event{alloc(1, 16, 100), free(1), alloc(2, 16, 1), alloc(3, 32, 1)},
			mptrace.Totals{Events: 4, Allocated: sum(3, 102), Freed: sum(1, 100), Live: sum(2, 2), Peak: sum(2, 100), Smallest: 1, Largest: 100},
			mptrace.Entry{Done: true, Number: 4, Address: 32, Size: 1},
		},
		{
			"a size of 0 is not the smallest",
			[]wire.Event{alloc(1, 16, 3), alloc(2, 32, 0), alloc(3, 48, 4)},
			mptrace.Totals{Events: 3, Allocated: sum(3, 7), Live: sum(3, 7), Peak: sum(3, 7), Smallest: 3, Largest: 4},
			mptrace.Entry{Done: true, Number: 3, Address: 48, Size: 4},
		},
		{
			"an unknown index takes a number only",
			[]wire.Event{alloc(1, 16, 3), realloc(2, 32, 9), free(3)},
			mptrace.Totals{Events: 3, Allocated: sum(1, 3), Live: sum(1, 3), Peak: sum(1, 3), Smallest: 3, Largest: 3},
			mptrace.Entry{Problem: mptrace.Unknown, Number: 3},
		},
		{
			"nothing is freed twice",
			[]wire.Event{alloc(1, 16, 3), free(1), free(1)},
			mptrace.Totals{Events: 3, Allocated: sum(1, 3), Freed: sum(1, 3), Peak: sum(1, 3), Smallest: 3, Largest: 3},
			mptrace.Entry{Problem: mptrace.Unknown, Number: 3},
		},
		{
			"an index that is allocated twice was freed",
			[]wire.Event{alloc(1, 16, 3), alloc(1, 32, 4)},
			mptrace.Totals{Events: 2, Allocated: sum(2, 7), Freed: sum(1, 3), Live: sum(1, 4), Peak: sum(1, 4), Smallest: 3, Largest: 4},
			mptrace.Entry{Done: true, Problem: mptrace.Twice, Number: 2, Address: 32, Size: 4, OldAddress: 16, OldSize: 3},
		},
		{
			"realloc as it was written before 1.4.4",
			[]wire.Event{alloc(1, 16, 3), free(1), heap, alloc(1, 32, 4), free(1)},
			mptrace.Totals{Events: 4, Allocated: sum(2, 7), Freed: sum(2, 7), Peak: sum(1, 4), Reserved: sum(1, 4096), Smallest: 3, Largest: 4},
			mptrace.Entry{Done: true, Number: 4, Address: 32, Size: 4, Life: 3},
		},
		{
			"an index that comes back later begins anew",
			[]wire.Event{alloc(1, 16, 3), free(1), alloc(2, 64, 3), alloc(1, 32, 4), free(1)},
			mptrace.Totals{Events: 5, Allocated: sum(3, 10), Freed: sum(2, 7), Live: sum(1, 3), Peak: sum(2, 7), Smallest: 3, Largest: 4},
			mptrace.Entry{Done: true, Number: 5, Address: 32, Size: 4, Life: 1},
		},
		{
			"the largest numbers",
			[]wire.Event{alloc(math.MaxUint64, math.MaxUint64, math.MaxUint64), free(math.MaxUint64)},
			mptrace.Totals{
				Events: 2, Allocated: sum(1, math.MaxUint64), Freed: sum(1, math.MaxUint64), Peak: sum(1, math.MaxUint64),
				Smallest: math.MaxUint64, Largest: math.MaxUint64,
			},
			mptrace.Entry{Done: true, Number: 2, Address: math.MaxUint64, Size: math.MaxUint64, Life: 1},
		},
	} {
		b := mptrace.NewBook()
		all := entries(b, tt.events...)
		if d := cmp.Diff(tt.want, *b.Totals()); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		if len(all) == 0 {
			continue
		}
		last := all[len(all)-1]
		last.Kind, last.Index, last.Live = 0, 0, mptrace.Sum{}
		if d := cmp.Diff(tt.last, last); d != "" {
			t.Errorf("%s: last entry (-want +got):\n%s", tt.name, d)
		}
	}
}

// model counts events in the simplest way, with a map.
type model struct {
	live map[uint64][3]uint64 // address, size, event of the A
	gone uint64               // 1 + index that the last event freed
	born uint64
	t    mptrace.Totals
}

func (m *model) add(e *wire.Event) (n mptrace.Entry) {
	m.t.Events++
	n = mptrace.Entry{Kind: e.Kind, Index: e.Index, Number: m.t.Events}
	old, live := m.live[e.Index]
	gone := m.gone
	m.gone = 0
	if e.Kind != wire.Alloc && !live {
		n.Problem = mptrace.Unknown
		n.Live = m.t.Live
		return n
	}
	n.Done = true
	if live {
		m.t.Freed.Add(old[1])
		m.t.Live.Sub(old[1])
	}
	if e.Kind == wire.Free {
		delete(m.live, e.Index)
		n.Address, n.Size, n.Life = old[0], old[1], m.t.Events-old[2]
		m.gone, m.born = e.Index+1, old[2]
		n.Live = m.t.Live
		return n
	}
	n.Address, n.Size = e.Address, e.Size
	n.OldAddress, n.OldSize = old[0], old[1]
	born := m.t.Events
	switch {
	case e.Kind == wire.Realloc:
		born = old[2]
	case live:
		n.Problem = mptrace.Twice
	case gone == e.Index+1:
		born = m.born
	}
	m.live[e.Index] = [3]uint64{e.Address, e.Size, born}
	m.t.Allocated.Add(e.Size)
	m.t.Live.Add(e.Size)
	m.t.Peak.Count, m.t.Peak.Bytes = max(m.t.Peak.Count, m.t.Live.Count), max(m.t.Peak.Bytes, m.t.Live.Bytes)
	m.t.Largest = max(m.t.Largest, e.Size)
	if e.Size > 0 && (m.t.Smallest == 0 || e.Size < m.t.Smallest) {
		m.t.Smallest = e.Size
	}
	n.Live = m.t.Live
	return n
}

// Random events with dense and sparse indices agree with the model.
func TestBookAgainstModel(t *testing.T) {
	for _, tt := range []struct {
		name  string
		index func(r *rand.Rand, i uint64) uint64
	}{
		{"few", func(r *rand.Rand, _ uint64) uint64 { return r.Uint64N(50) }},
		{"growing", func(r *rand.Rand, i uint64) uint64 { return i - min(i, r.Uint64N(100)*r.Uint64N(500)) }},
		{"at the same place", func(r *rand.Rand, _ uint64) uint64 { return r.Uint64N(40) << 13 }},
		{"anywhere", func(r *rand.Rand, _ uint64) uint64 { return 1 << r.UintN(64) * r.Uint64N(5) }},
		{"many", func(r *rand.Rand, _ uint64) uint64 { return r.Uint64N(50_000) }},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		b, m := mptrace.NewBook(), model{live: map[uint64][3]uint64{}}
		for i := range uint64(200_000) {
			e := wire.Event{Kind: wire.Alloc, Index: tt.index(r, i), Address: r.Uint64(), Size: r.Uint64N(1000)}
			switch r.UintN(4) {
			case 0:
				e.Kind = wire.Realloc
			case 1, 2:
				e.Kind, e.Address, e.Size = wire.Free, 0, 0
			}
			var got mptrace.Entry
			b.Add(&e, &got)
			want := m.add(&e)
			if want.Problem == mptrace.Unknown {
				// The other fields are not set.
				want.Live, want.Address, want.Size = got.Live, got.Address, got.Size
			}
			if got != want || *b.Totals() != m.t {
				t.Fatalf("%s: event %d, %+v:\n%s%s", tt.name, i, e, cmp.Diff(want, got), cmp.Diff(m.t, *b.Totals()))
			}
		}
	}
}

// The memory of a book is in proportion to the live blocks, for any indices.
func TestBookHolds(t *testing.T) {
	for _, step := range []uint64{1, 1 << 13, 1<<13 + 1, 1 << 40, 1<<63 + 1} {
		b := mptrace.NewBook()
		const live = 100
		for i := range uint64(100_000) {
			entries(b, alloc(i*step, 1, 1))
			if i >= live {
				entries(b, free((i-live)*step))
			}
		}
		if n := b.Totals().Live.Count; n != live {
			t.Fatalf("step %d: %d live", step, n)
		}
		if b.Held() > 2*live {
			t.Errorf("step %d: slots for %d blocks where %d are live", step, b.Held(), live)
		}
	}
}

func TestBookAllocations(t *testing.T) {
	b := mptrace.NewBook()
	var n mptrace.Entry
	events := []wire.Event{alloc(0, 16, 10), realloc(0, 32, 20), free(0)}
	next := uint64(1)
	if got := testing.AllocsPerRun(10_000, func() {
		for i := range events {
			events[i].Index = next
			b.Add(&events[i], &n)
		}
		next++
	}); got != 0 {
		t.Errorf("%v allocations for three events", got)
	}
}

package mtrc

import (
	"math/rand/v2"
	"testing"

	wire "rtrace-bpf/internal/wire/mtrc"
)

// viewed is a live block: its address, and its address in the view.
type viewed struct {
	real, view, size uint64
	pid              int32
	shared           bool
}

// For any blocks that do not overlap: live blocks do not overlap in the view unless
// they are counted as shared, low bits are kept, and no number is too high.
func TestLegacyView(t *testing.T) {
	for _, tt := range []struct {
		name   string
		spread uint64 // addresses are below it
		most   uint64 // bytes of a block
		live   int
		shared bool
	}{
		{"a heap", 64 << 20, 4 << 10, 5000, false},
		{"large blocks", 1 << 40, 40 << 20, 25, false},
		{"far apart", 1 << 47, 64, 1500, false},
		{"too far apart", 1 << 47, 64, 4000, true},
		{"too large", 1 << 47, 500 << 20, 40, true},
		{"the whole range", 0, 8 << 30, 3, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			l := newLegacy()
			var live []*viewed
			indices := map[*viewed]uint64{}
			for index := uint64(1); index < 20_000; index++ {
				if len(live) >= tt.live || len(live) > 0 && random.IntN(3) == 0 {
					k := random.IntN(len(live))
					e := wire.Event{Kind: wire.Free, Index: indices[live[k]]}
					l.fit(&e, live[k].pid)
					delete(indices, live[k])
					live[k] = live[len(live)-1]
					live = live[:len(live)-1]
					continue
				}
				b := &viewed{real: random.Uint64(), size: random.Uint64N(tt.most + 1), pid: int32(random.IntN(2))}
				if tt.spread != 0 {
					b.real %= tt.spread
				}
				if taken(live, b) {
					continue
				}
				before := l.stats.Shared
				e := wire.Event{Kind: wire.Alloc, Index: index, Address: b.real, Size: b.size, Source: wire.Source{Thread: random.Uint64(), Line: random.Uint64()}}
				l.fit(&e, b.pid)
				b.view, b.shared = e.Address, l.stats.Shared > before
				if max(e.Address, e.Size, e.Source.Thread, e.Source.Line) >= wire.LegacyLimit || e.Address < 1<<granuleBits {
					t.Fatalf("%+v", e)
				}
				if b.view&granuleMask != b.real&granuleMask {
					t.Fatalf("%#x is seen at %#x", b.real, b.view)
				}
				if !b.shared {
					for _, other := range live {
						if !other.shared && b.view < other.view+max(other.size, 1) && other.view < b.view+max(b.size, 1) {
							t.Fatalf("%+v and %+v overlap", b, other)
						}
					}
				}
				live = append(live, b)
				indices[b] = index
			}
			if (l.stats.Shared > 0) != tt.shared {
				t.Errorf("%d blocks are shared", l.stats.Shared)
			}
			if n := l.blocks.Len(); n != len(live) {
				t.Errorf("%d entries for %d blocks", n, len(live))
			}
			if len(l.granules) >= slots {
				t.Errorf("%d granules have a slot", len(l.granules))
			}
			used := 0
			for i := range l.slots {
				if l.slots[i].taken {
					used++
				}
			}
			if used != l.used {
				t.Errorf("%d slots are used, not %d", used, l.used)
			}
			for b, index := range indices {
				e := wire.Event{Kind: wire.Free, Index: index}
				l.fit(&e, b.pid)
			}
			for i := range l.slots {
				if l.slots[i].blocks != 0 {
					t.Fatalf("slot %d still has %d blocks", i, l.slots[i].blocks)
				}
			}
		})
	}
}

func taken(live []*viewed, b *viewed) bool {
	end := func(v *viewed) uint64 { return max(v.real+max(v.size, 1), v.real) }
	for _, o := range live {
		if o.pid == b.pid && b.real < end(o) && o.real < end(b) {
			return true
		}
	}
	return b.real+b.size < b.real
}

// Growth of the heap keeps its range together, the blocks in it are in the range that
// it was given, and adjacent blocks stay adjacent.
func TestLegacyHeap(t *testing.T) {
	l := newLegacy()
	heap := wire.Event{Kind: wire.Heap, Address: 0x55e8dc990000, Size: 5 << 20}
	l.fit(&heap, 1)
	more := wire.Event{Kind: wire.Heap, Address: 0x55e8dce90000, Size: 132 << 10}
	l.fit(&more, 1)
	if more.Address-heap.Address != 5<<20 {
		t.Errorf("growth at %#x and %#x", heap.Address, more.Address)
	}
	e := wire.Event{Kind: wire.Alloc, Index: 1, Address: 0x55e8dcb90010, Size: 3 << 20}
	l.fit(&e, 1)
	if e.Address-heap.Address != 0x200010 {
		t.Errorf("block at %#x in a heap at %#x", e.Address, heap.Address)
	}
	below := wire.Event{Kind: wire.Alloc, Index: 2, Address: 0x55e8dc880010, Size: 8}
	l.fit(&below, 1)
	other := wire.Event{Kind: wire.Alloc, Index: 3, Address: 0x55e8dcb90010, Size: 3 << 20}
	l.fit(&other, 2)
	if other.Address == e.Address {
		t.Error("two processes are in one place")
	}
	// The heap may be larger than the view.
	huge := wire.Event{Kind: wire.Heap, Address: 0x600000000000, Size: 1 << 40}
	l.fit(&huge, 1)
	if huge.Address >= wire.LegacyLimit || huge.Size != wire.LegacyLimit-1 || l.stats.ClampedSizes != 1 {
		t.Errorf("%+v, %+v", huge, l.stats)
	}
}

// A block that grows in place keeps its place in the view if there is room.
func TestLegacyMove(t *testing.T) {
	l := newLegacy()
	e := wire.Event{Kind: wire.Alloc, Index: 1, Address: 0x7f0000000010, Size: 1 << 20}
	l.fit(&e, 1)
	at := e.Address
	e = wire.Event{Kind: wire.Realloc, Index: 1, Address: 0x7f0000000010, Size: 30 << 20}
	l.fit(&e, 1)
	if e.Address != at || l.blocks.Len() != 1 {
		t.Errorf("it went from %#x to %#x, %d entries", at, e.Address, l.blocks.Len())
	}
}

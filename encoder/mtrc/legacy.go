package mtrc

import (
	"math"

	"rtrace-bpf/internal/live"
	wire "rtrace-bpf/internal/wire/mtrc"
)

// Addresses are mapped into a view of 31 bits. The view is divided into slots, and the
// memory of a process into granules of the same size.
const (
	granuleBits = 20
	granuleMask = 1<<granuleBits - 1
	slots       = wire.LegacyLimit >> granuleBits
	maxNumber   = wire.LegacyLimit - 1
)

// LegacyStats counts what the legacy form could not hold unchanged.
type LegacyStats struct {
	ClampedSizes  uint64 // events with a size of 2 GiB or more: written as one byte less than 2 GiB
	ClampedLines  uint64 // events with a line number of 2^31 or more
	FoldedThreads uint64 // events whose thread id was folded into 31 bits
	// Shared counts blocks that were put where other live blocks may be, because the
	// live blocks of the process are spread too far.
	Shared uint64
}

// legacy keeps the numbers of events below wire.LegacyLimit. It uses memory for the
// slots, and an entry for each live block.
//
// A granule in use gets a slot, which belongs to it as long as a block in it is live.
// So addresses keep their low bits and their order within a granule, and live blocks do
// not overlap.
type legacy struct {
	slots    [slots]slot
	granules map[granule]uint16 // slot of each granule that has one
	next     int                // where to search for a slot
	used     int                // slots that are or were taken; slot 0 is never used
	blocks   *live.Table        // by index: number of slots as size, and the first one as value
	stats    LegacyStats

	// The granule that was placed last.
	lastGranule granule
	lastSlot    int
}

// granule is 1 MiB of the memory of a process.
type granule struct {
	pid    int32
	number uint64 // address >> granuleBits
}

// slot is 1 MiB of the view.
type slot struct {
	granule granule
	taken   bool   // by a granule; else the slot was never used
	blocks  uint32 // live ones in it
}

func newLegacy() *legacy {
	l := &legacy{}
	l.reset()
	return l
}

// reset forgets everything, at the start of a new stream.
func (l *legacy) reset() {
	*l = legacy{granules: make(map[granule]uint16), next: 1, blocks: live.New(), stats: l.stats}
}

// fit changes an event of a process so that all its numbers are below the limit.
func (l *legacy) fit(e *wire.Event, pid int32) {
	switch e.Kind {
	case wire.Heap, wire.Internal:
		first, _, ok := l.place(e.Address, e.Size, pid)
		if !ok {
			first, _, _ = l.place(e.Address, 1, pid)
		}
		e.Address = view(first, e.Address)
	case wire.Realloc:
		l.remove(e.Index)
		l.insert(e, pid)
	case wire.Alloc:
		l.insert(e, pid)
	case wire.Free:
		l.remove(e.Index)
	}
	if e.Size > maxNumber {
		e.Size = maxNumber
		l.stats.ClampedSizes++
	}
	if e.Source.Line > maxNumber {
		e.Source.Line = maxNumber
		l.stats.ClampedLines++
	}
	if t := e.Source.Thread; t > maxNumber {
		e.Source.Thread = (t ^ t>>31 ^ t>>62) & maxNumber
		l.stats.FoldedThreads++
	}
}

// view returns the address in a slot that stands for the given address.
func view(slot int, address uint64) uint64 {
	return uint64(slot)<<granuleBits | address&granuleMask
}

// insert finds a place for the block of an event.
func (l *legacy) insert(e *wire.Event, pid int32) {
	first, n, ok := l.place(e.Address, e.Size, pid)
	if !ok {
		l.stats.Shared++
	}
	for i := first; i < first+n; i++ {
		l.slots[i].blocks++
	}
	l.blocks.Insert(0, e.Index, uint64(n), uint64(first))
	e.Address = view(first, e.Address)
}

func (l *legacy) remove(index uint64) {
	b, _ := l.blocks.Remove(0, index)
	for i := b.Value; i < b.Value+b.Size; i++ {
		l.slots[i].blocks--
	}
}

// place returns the slots for size bytes at an address. ok is false if other blocks may
// be there, too.
func (l *legacy) place(address, size uint64, pid int32) (first, n int, ok bool) {
	end := address + max(size, 1) - 1
	if end < address {
		end = math.MaxUint64
	}
	g := granule{pid, address >> granuleBits}
	more := end>>granuleBits - g.number
	if more == 0 && g == l.lastGranule && l.lastSlot != 0 {
		return l.lastSlot, 1, true
	}
	if more >= slots-1 {
		return 1, slots - 1, false
	}
	n = int(more) + 1
	if first, ok = l.find(g, n); !ok {
		// No free slots: always the same ones for this granule.
		return 1 + int(g.number%uint64(slots-n)), n, false
	}
	l.lastGranule, l.lastSlot = g, first
	return first, n, true
}

// find gives n granules in a row as many slots in a row and returns the first slot.
func (l *legacy) find(g granule, n int) (int, bool) {
	if s, ok := l.granules[g]; ok && l.fits(g, int(s), n) {
		return l.take(g, int(s), n), true
	}
	// Adjacent granules get adjacent slots if there is room.
	if s, ok := l.granules[granule{g.pid, g.number - 1}]; ok && l.fits(g, int(s)+1, n) {
		return l.take(g, int(s)+1, n), true
	}
	if s, ok := l.granules[granule{g.pid, g.number + uint64(n)}]; ok && l.fits(g, int(s)-n, n) {
		return l.take(g, int(s)-n, n), true
	}
	if l.used+n < slots {
		if s := l.search(n, func(t *slot) bool { return !t.taken }); s != 0 {
			return l.take(g, s, n), true
		}
	}
	if s := l.search(n, func(t *slot) bool { return t.blocks == 0 }); s != 0 {
		return l.take(g, s, n), true
	}
	return 0, false
}

// fits reports whether the n slots from s on are unused or belong to the granules.
func (l *legacy) fits(g granule, s, n int) bool {
	if s < 1 || s+n > slots {
		return false
	}
	for i := range l.slots[s : s+n] {
		if t := &l.slots[s+i]; t.taken && t.granule != (granule{g.pid, g.number + uint64(i)}) {
			return false
		}
	}
	return true
}

// search looks for n good slots in a row, starting where the last search ended, and
// returns the first one, or 0.
func (l *legacy) search(n int, good func(*slot) bool) int {
	for range 2 {
		for s, found := l.next, 0; s < slots; s++ {
			if found++; !good(&l.slots[s]) {
				found = 0
			}
			if found == n {
				l.next = s + 1
				return s + 1 - n
			}
		}
		l.next = 1
	}
	return 0
}

// take gives the slots from s on to granules and takes them from their former granules.
func (l *legacy) take(g granule, s, n int) int {
	for i := range n {
		t, now := &l.slots[s+i], granule{g.pid, g.number + uint64(i)}
		if !t.taken {
			l.used++
		} else if t.granule != now && l.granules[t.granule] == uint16(s+i) {
			delete(l.granules, t.granule)
		}
		t.taken, t.granule = true, now
		l.granules[now] = uint16(s + i)
	}
	l.lastSlot = 0
	return s
}

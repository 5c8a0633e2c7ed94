package residence

import (
	"maps"
	"slices"

	"rtrace-bpf/internal/linux/resident"
)

// Cause is the stack and the thread of a page fault.
type Cause struct {
	Stack uint64 // hash of the stack; 0 if there is none
	TID   uint32
}

// origin is the number of a Cause, or one of the following.
type origin uint32

const (
	noOrigin   origin = iota
	fromBefore        // resident when the ledger began
	unknown           // no fault explains it
	firstStack        // the first number of a Cause
)

// Change is a block that has become resident, or is not resident any more. A block is a run of
// pages with the same origin. If only a part of it goes, all of it goes, and what is left comes
// back as new blocks.
type Change struct {
	Gone       bool
	Start, End uint64
	Cause      Cause
	Known      bool // Cause is known; also of a block that goes
}

// Sums are amounts of resident memory, in bytes.
type Sums struct {
	Before     uint64 // resident since the ledger began
	Attributed uint64 // come since then, by known page faults
	Unknown    uint64 // come since then, nobody knows how
}

// Ledger holds which pages of a process are resident, and where they come from. Its zero value
// has none.
type Ledger struct {
	page    uint64 // bytes of a page
	trusts  bool   // a fault on a page that was not there has brought it
	chunks  map[uint64]*chunk
	causes  []Cause
	numbers map[Cause]origin
	areas   areas
	sums    Sums

	last   *chunk // where the last fault was
	lastAt uint64
}

// NewLedger returns a ledger with pages of a size in bytes. trusts is set if a fault on a page
// that was there at the last look, and not there at the fault, means that the page had gone. It
// does not with the balancing of memory between NUMA nodes, and where faults do not show whether
// the page was there.
func NewLedger(page uint64, trusts bool) *Ledger {
	l := &Ledger{page: page, trusts: trusts}
	l.Clear()
	return l
}

// Clear forgets everything, because the process has executed another program. Nothing is resident
// then.
func (l *Ledger) Clear() {
	l.chunks, l.numbers, l.causes, l.areas = map[uint64]*chunk{}, map[Cause]origin{}, nil, nil
	l.sums, l.last = Sums{}, nil
}

// Sums returns the amounts at the last look.
func (l *Ledger) Sums() Sums { return l.sums }

// Begin notes what is resident at the beginning. Nothing else has been called before.
func (l *Ledger) Begin(v *View) {
	for at, set := range l.sets(v.Ranges) {
		c := l.at(at)
		c.resident = set
		for i := range chunkPages {
			if set.has(i) {
				c.owner[i] = fromBefore
			}
		}
		l.sums.Before += set.count() * l.page
	}
}

// Fault notes a page fault. present is set if a page was there, and the fault has changed or
// copied it.
func (l *Ledger) Fault(address uint64, by Cause, present bool) {
	l.touch(address, l.number(by), present)
}

// touch notes the fault of a page.
func (l *Ledger) touch(address uint64, by origin, present bool) {
	at := address / (chunkPages * l.page)
	if l.last == nil || l.lastAt != at {
		l.last, l.lastAt = l.at(at), at
	}
	l.last.fault(int(address/l.page%chunkPages), by, present)
}

// number returns the number of a cause.
func (l *Ledger) number(by Cause) origin {
	n := l.numbers[by]
	if n == noOrigin {
		n = firstStack + origin(len(l.causes))
		l.causes = append(l.causes, by)
		l.numbers[by] = n
	}
	return n
}

// at returns a chunk, which it makes if there is none.
func (l *Ledger) at(at uint64) *chunk {
	c := l.chunks[at]
	if c == nil {
		c = new(chunk)
		l.chunks[at] = c
	}
	return c
}

// sets returns the pages of ranges, by chunk.
func (l *Ledger) sets(ranges []resident.Range) map[uint64]pageSet {
	all := map[uint64]pageSet{}
	size := chunkPages * l.page
	for _, r := range ranges {
		for start := r.Start; start < r.End; {
			at := start / size
			end := min(r.End, (at+1)*size)
			set := all[at]
			set.addRange(int(start/l.page%chunkPages), int((end-1)/l.page%chunkPages)+1)
			all[at] = set
			start = end
		}
	}
	return all
}

// Look compares what is resident now with the look before, and calls change for each difference,
// in the order of addresses.
func (l *Ledger) Look(v *View, change func(*Change)) {
	sets := l.sets(v.Ranges)
	for at := range sets {
		l.at(at)
	}
	for _, at := range l.order() {
		c := l.chunks[at]
		d := difference{l: l, c: c, at: at, now: sets[at], borders: v.within(at*chunkPages*l.page, (at+1)*chunkPages*l.page), change: change}
		d.run()
		if c.looked(); c.resident.empty() && c.faults == nil {
			delete(l.chunks, at)
		}
	}
	l.last = nil
	l.areas.drop(v)
}

// order returns the numbers of all chunks, ascending.
func (l *Ledger) order() []uint64 { return slices.Sorted(maps.Keys(l.chunks)) }

// End notes that the process has ended, and its pages cannot be looked at any more: what was
// touched since the last look counts as resident. It calls change as Look does, and returns how
// many bytes these are.
func (l *Ledger) End(change func(*Change)) (touched uint64) {
	before := l.sums.Attributed
	for _, at := range l.order() {
		c := l.chunks[at]
		if c.faults == nil {
			continue
		}
		rest := without(&c.faults.seen, &c.faults.kept)
		c.faults.fresh = pageSet{}
		d := difference{l: l, c: c, at: at, now: either(&c.resident, &rest), change: change}
		d.run()
	}
	return l.sums.Attributed - before
}

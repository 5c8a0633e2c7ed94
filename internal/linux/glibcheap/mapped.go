package glibcheap

import (
	"context"

	"rtrace-bpf/internal/heap"
)

// maxProbes is at how many pages a block is looked for.
const maxProbes = 1 << 20

// Mapped looks for live blocks with mappings of their own in private anonymous memory that is
// used for nothing else. It returns where they are, in order. If the library's own count of
// these blocks is known, it stops when it has found as many bytes.
//
// Such a block begins with a header at the start of its mapping: 0 and the size of the mapping.
// If it is aligned to more, the header is just before the aligned address, with the distance to
// the start of the mapping instead of 0.
func (f *Finder) Mapped(ctx context.Context, memory []Extent) []Extent {
	var all []Extent
	r, probes := f.reader, 0
	state := f.Heap
	for _, e := range memory {
		for p := e.Start; p < e.End; {
			if state.Counted && state.Mapped.Bytes >= state.CountedMapped {
				return all
			}
			if probes++; probes == maxProbes || probes%(1<<10) == 0 && ctx.Err() != nil {
				state.Why = "not all blocks with mappings of their own were looked for: there is too much memory, or no time left"
				return all
			}
			start, end, ok := r.mappedAt(p, e)
			if !ok {
				p += r.page
				continue
			}
			state.Mapped.Blocks++
			state.Mapped.Bytes += end - start
			state.Mapped.Resident += r.space.Resident(start, end)
			if n := len(all); n > 0 && all[n-1].End == start {
				all[n-1].End = end
			} else {
				all = append(all, Extent{start, end})
			}
			p = end
		}
	}
	return all
}

// mappedAt returns the mapping of a block whose header is in the page at p, or at its end.
func (r *reader) mappedAt(p uint64, within Extent) (start, end uint64, ok bool) {
	if !r.space.Readable(p) {
		return 0, 0, false
	}
	if start, end, ok = r.header(p, p, within); ok {
		return start, end, true
	}
	// Alignment to a page or more: the header is at the end of a page, and the mapping begins at
	// most as far below it as it states.
	last := p + r.page - 2*word
	var before [1]uint64
	if r.words(last, before[:]) == nil && before[0] < last && before[0] > 0 {
		if start, end, ok = r.header(last, last-before[0], within); ok {
			return start, end, true
		}
	}
	// Alignment to less: it is somewhere in the first page.
	const less = 2 * minBlock
	for at := p + less - 2*word; at < last; at += less {
		if start, end, ok = r.header(at, p, within); ok {
			return start, end, true
		}
	}
	return 0, 0, false
}

// header returns the mapping of a block whose header is at an address, if the mapping begins at
// start.
func (r *reader) header(at, start uint64, within Extent) (_, end uint64, ok bool) {
	var h [2]uint64
	if r.words(at, h[:]) != nil {
		return 0, 0, false
	}
	size := h[1] &^ flags
	total := size + h[0]
	ok = h[1]&flags == flagMapped && h[0] == at-start && size >= r.page/2 && size <= within.End-at &&
		total%r.page == 0 && start%r.page == 0 && start >= within.Start
	return start, start + total, ok
}

// Amounts returns the sums over all arenas.
func Amounts(arenas []heap.Arena) (sum heap.Arena) {
	for _, a := range arenas {
		for _, p := range []struct {
			to   *heap.Amount
			from heap.Amount
		}{
			{&sum.Live, a.Live},
			{&sum.Free, a.Free},
			{&sum.Cached, a.Cached},
			{&sum.Fast, a.Fast},
			{&sum.Top, a.Top},
			{&sum.Own, a.Own},
			{&sum.Unread, a.Unread},
		} {
			p.to.Blocks += p.from.Blocks
			p.to.Bytes += p.from.Bytes
			p.to.Resident += p.from.Resident
		}
		sum.System += a.System
	}
	return sum
}

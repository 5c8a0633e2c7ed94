package glibcheap

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/heap"
)

// kept is how many holes of an arena are listed.
const kept = 8

// holes collects the largest free blocks of an arena, and what is above each.
type holes struct {
	all   []heap.Hole
	begun int         // how many of all are in heaps that were walked before
	below heap.Amount // live blocks of this heap so far
	after bool        // the last block was free
}

// begin starts a heap.
func (h *holes) begin() {
	h.below = heap.Amount{}
	h.after = false
	h.begun = len(h.all)
}

// live adds a live block.
func (h *holes) live(size, resident uint64) {
	h.below.Blocks++
	h.below.Bytes += size
	h.below.Resident += resident
	if h.after {
		h.after = false
		h.all[len(h.all)-1].Next = size
	}
}

// free adds a free block.
func (h *holes) free(at, size, resident uint64) {
	h.after = false
	if n := len(h.all) - h.begun; n >= 2*kept {
		h.shrink()
	}
	if len(h.all)-h.begun >= kept && size <= h.smallest() {
		return
	}
	// Above holds what is below until the end of the heap.
	h.all = append(h.all, heap.Hole{Address: at, Bytes: size, Resident: resident, Above: h.below})
	h.after = true
}

// smallest returns the size of the smallest hole of this heap among those kept last.
func (h *holes) smallest() uint64 {
	least := ^uint64(0)
	for _, o := range h.all[h.begun:] {
		least = min(least, o.Bytes)
	}
	return least
}

// shrink leaves the largest holes of this heap, in their order.
func (h *holes) shrink() {
	largest := slices.Clone(h.all[h.begun:])
	slices.SortFunc(largest, bySize)
	least := largest[kept-1].Bytes
	room := kept
	rest := h.all[:h.begun]
	for _, o := range h.all[h.begun:] {
		if o.Bytes >= least && room > 0 {
			rest = append(rest, o)
			room--
		}
	}
	h.all = rest
}

func bySize(a, b heap.Hole) int {
	return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Address, b.Address))
}

// end ends a heap: what is above each of its holes is known.
func (h *holes) end() {
	for i := range h.all[h.begun:] {
		a := &h.all[h.begun+i].Above
		a.Blocks, a.Bytes, a.Resident = h.below.Blocks-a.Blocks, h.below.Bytes-a.Bytes, h.below.Resident-a.Resident
	}
	h.after = false
}

// largest returns the largest holes of all heaps.
func (h *holes) largest() []heap.Hole {
	all := slices.Clone(h.all)
	slices.SortFunc(all, bySize)
	return append([]heap.Hole{}, all[:min(len(all), kept)]...)
}

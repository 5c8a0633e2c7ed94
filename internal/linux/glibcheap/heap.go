package glibcheap

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"rtrace-bpf/internal/heap"
)

// Finder reads the heap of one process once.
type Finder struct {
	// Heap is what was found so far. It has no arenas if the main one was not found; Why is
	// the reason.
	Heap *heap.Heap
	// Extents is the memory of all arenas, ordered by address.
	Extents []Extent

	reader *reader
	roots  []arena
	heaps  [][]segment // of each arena
}

// Find looks for the arenas. data is the writable data of the library, or of a static program,
// brk the memory below the program break, which may be empty. page is the size of a page in
// bytes.
func Find(space Space, page uint64, data []Extent, brk Extent) *Finder {
	f := &Finder{Heap: &heap.Heap{Arenas: []heap.Arena{}}, reader: newReader(space, page)}
	roots, err := f.reader.findMain(data)
	if err != nil {
		f.Heap.Why = err.Error()
		return f
	}
	f.roots = roots
	if p, ok := f.reader.findParameters(data, brk); ok {
		f.Heap.Counted, f.Heap.CountedBlocks, f.Heap.CountedMapped = true, p.blocks, p.bytes
	}
	for i := range roots {
		root := &roots[i]
		a := heap.Arena{Address: root.at, Main: root.main, System: root.system, Holes: []heap.Hole{}}
		heaps, err := f.find(root, brk)
		if err != nil {
			a.Why = err.Error()
		}
		a.Heaps = len(heaps)
		f.heaps = append(f.heaps, heaps)
		f.Heap.Arenas = append(f.Heap.Arenas, a)
	}
	f.Extents = f.extents().extents
	return f
}

// Unused reports whether malloc has got no memory from the kernel, as far as is known before
// blocks with mappings of their own are looked for.
func (f *Finder) Unused() bool {
	return Amounts(f.Heap.Arenas).System == 0 && f.Heap.CountedMapped == 0
}

// errElsewhere reports a main arena that does not use the program break.
var errElsewhere = errors.New("the main arena has memory outside of the program break, which is not read")

// find returns the heaps of an arena.
func (f *Finder) find(a *arena, brk Extent) ([]segment, error) {
	if !a.main {
		return f.reader.heapsOf(a, a.bins-a.at)
	}
	var err error
	if a.system > 0 && (!brk.Has(a.top) || a.system > brk.End-brk.Start) {
		err = errElsewhere
	}
	if brk.Start == brk.End || a.system == 0 {
		return nil, err
	}
	return []segment{{Extent: brk, first: brk.Start}}, err
}

// extents returns the memory of all arenas, and which arena each piece belongs to. Pieces that
// overlap are left out: they cannot all be right.
func (f *Finder) extents() *caches {
	type piece struct {
		Extent
		owner int
	}
	var all []piece
	for i, heaps := range f.heaps {
		for _, h := range heaps {
			all = append(all, piece{h.Extent, i})
		}
	}
	slices.SortFunc(all, func(a, b piece) int { return cmp.Compare(a.Start, b.Start) })
	c := &caches{}
	for _, p := range all {
		if n := len(c.extents); n > 0 && c.extents[n-1].End > p.Start {
			continue
		}
		c.extents, c.owners = append(c.extents, p.Extent), append(c.owners, p.owner)
	}
	return c
}

// Walk counts the blocks of all arenas. What it has not read when ctx ends is counted as unread.
func (f *Finder) Walk(ctx context.Context) {
	all := f.extents()
	arenas := f.Heap.Arenas
	for i := range arenas {
		w := &walker{reader: f.reader, ctx: ctx, arena: &arenas[i], caches: all}
		for _, h := range f.heaps[i] {
			if j, ok := slices.BinarySearchFunc(all.extents, h.Start, func(e Extent, at uint64) int { return cmp.Compare(e.Start, at) }); ok && all.owners[j] == i {
				w.walk(h, f.roots[i].top)
			}
		}
		arenas[i].Holes = w.holes.largest()
	}
	f.Heap.ThreadCaches = all.collect(f.reader, f.roots, arenas)
}

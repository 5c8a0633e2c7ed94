package glibcheap

import (
	"context"
	"slices"

	"rtrace-bpf/internal/heap"
)

// cacheForm is a version of struct tcache_perthread_struct.
type cacheForm struct {
	block   uint64 // size of the block that holds it
	entries uint64 // offset of the heads of the lists
	lists   int
}

// cacheForms are those of glibc 2.26 to 2.29 (counts of one byte), 2.30 to 2.41 (two bytes), and
// 2.42 (also lists of large blocks).
var cacheForms = []cacheForm{{0x250, 64, 64}, {0x290, 128, 64}, {0x300, 152, 76}}

// smallLists is how many lists hold blocks of one size: 32 bytes, 48 and so on.
const smallLists = 64

// Limits against processes that mislead.
const (
	maxCaches = 1 << 16
	maxList   = 1 << 16 // blocks: counts have two bytes
	maxFreed  = 1 << 22 // blocks of all lists
)

// caches collects the caches of threads and what is in them.
type caches struct {
	extents []Extent // of all heaps, ordered
	owners  []int    // the arena of each extent, an index
	found   []cache
	seen    map[uint64]struct{} // blocks that were counted
}

// cache is a block that can be the cache of a thread.
type cache struct {
	at    uint64
	heads []uint64
}

// owner returns the index of the arena in whose heap an address is.
func (c *caches) owner(addr uint64) (int, bool) {
	i, found := slices.BinarySearchFunc(c.extents, addr, func(e Extent, addr uint64) int {
		switch {
		case e.End <= addr:
			return -1
		case e.Start > addr:
			return 1
		}
		return 0
	})
	if !found {
		return 0, false
	}
	return c.owners[i], true
}

// consider keeps a live block that can be the cache of a thread and holds blocks.
func (c *caches) consider(w *walker, p, size uint64) {
	for _, form := range cacheForms {
		if form.block != size || len(c.found) == maxCaches {
			continue
		}
		heads := make([]uint64, form.lists)
		if w.words(p+2*word+form.entries, heads) != nil {
			return
		}
		filled := false
		for _, h := range heads {
			if h == 0 {
				continue
			}
			if _, ok := c.owner(h); !ok || h%16 != 0 {
				return
			}
			filled = true
		}
		if filled {
			c.found = append(c.found, cache{at: p, heads: heads})
		}
	}
}

// freed moves free blocks of a list from the live ones of their arenas to another amount. first
// is the address of the first block's content; sizes reports whether the list can hold blocks of a size. It
// returns how many blocks it moved.
func (c *caches) freed(r *reader, arenas []heap.Arena, first uint64, sizes func(uint64) bool, to func(*heap.Arena) *heap.Amount) (moved int) {
	for at := first; at != 0 && moved < maxList && len(c.seen) < maxFreed; {
		i, ok := c.owner(at)
		if _, again := c.seen[at]; again || !ok || at%16 != 0 {
			return moved
		}
		head, err := r.word(at - word)
		size := head &^ flags
		if err != nil || !sizes(size) {
			return moved
		}
		c.seen[at] = struct{}{}
		if !move(&arenas[i].Live, to(&arenas[i]), size, r.space.Resident(at-2*word, at-2*word+size)) {
			return moved
		}
		moved++
		if at, err = c.next(r, at, sizes); err != nil {
			return moved
		}
	}
	return moved
}

// move moves a block from one amount to another. It returns false if there are no such blocks,
// which happens only if the memory changes or misleads.
func move(from, to *heap.Amount, size, resident uint64) bool {
	if from.Blocks == 0 || from.Bytes < size || from.Resident < resident {
		return false
	}
	from.Blocks--
	from.Bytes -= size
	from.Resident -= resident
	to.Blocks++
	to.Bytes += size
	to.Resident += resident
	return true
}

// next returns the block that follows one in a list. Since glibc 2.32 links are combined with
// their own address.
func (c *caches) next(r *reader, at uint64, sizes func(uint64) bool) (uint64, error) {
	const shift = 12
	link, err := r.word(at)
	if err != nil {
		return 0, err
	}
	for _, p := range []uint64{link ^ at>>shift, link} {
		if p == 0 {
			return 0, nil
		}
		if _, ok := c.owner(p); !ok || p%16 != 0 {
			continue
		}
		if head, err := r.word(p - word); err == nil && sizes(head&^flags) {
			return p, nil
		}
	}
	return 0, errBroken
}

// collect counts what is in the caches of threads and in fast bins, until ctx ends. It returns how
// many caches hold blocks.
func (c *caches) collect(ctx context.Context, r *reader, roots []arena, arenas []heap.Arena) (filled int) {
	c.seen = map[uint64]struct{}{}
	for _, cache := range c.found {
		if ctx.Err() != nil {
			return filled
		}
		moved := 0
		for i, first := range cache.heads {
			size := minBlock + 16*uint64(i)
			sizes := func(n uint64) bool { return n == size }
			if i >= smallLists {
				sizes = func(n uint64) bool { return n > minBlock+16*smallLists && n%16 == 0 && n <= heapMax }
			}
			moved += c.freed(r, arenas, first, sizes, func(a *heap.Arena) *heap.Amount { return &a.Cached })
		}
		if moved > 0 {
			filled++
		}
	}
	for _, root := range roots {
		for i, first := range root.fast {
			size := minBlock + 16*uint64(i)
			if first == 0 || ctx.Err() != nil {
				continue
			}
			// Fast bins point to the headers of blocks.
			c.fast(r, arenas, first, func(n uint64) bool { return n == size })
		}
	}
	return filled
}

// fast counts the blocks of a fast bin, whose links lead from header to header.
func (c *caches) fast(r *reader, arenas []heap.Arena, p uint64, sizes func(uint64) bool) {
	const shift = 12
	for n := 0; p != 0 && n < maxFreed && len(c.seen) < maxFreed; n++ {
		at := p + 2*word
		i, ok := c.owner(p)
		if _, again := c.seen[at]; again || !ok || p%16 != 0 {
			return
		}
		var block [3]uint64
		if r.words(p, block[:]) != nil || !sizes(block[1]&^flags) {
			return
		}
		c.seen[at] = struct{}{}
		size := block[1] &^ flags
		if !move(&arenas[i].Live, &arenas[i].Fast, size, r.space.Resident(p, p+size)) {
			return
		}
		link := block[2]
		p = link ^ at>>shift
		if _, ok := c.owner(p); !ok && p != 0 {
			p = link
		}
	}
}

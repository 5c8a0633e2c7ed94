// Package sizes counts allocations by size, and computes the memory wasted on
// sizes that suit an allocator badly.
package sizes

import (
	"maps"
	"slices"

	"rtrace-bpf/trace"
)

// Overhead is the assumed cost of a block in addition to its size, in bytes.
const Overhead = 8

// Counts holds the numbers of allocations by size. The zero value is empty. Its
// memory grows with the number of distinct sizes.
type Counts struct {
	bySize map[uint64]uint64
}

// Count is the number of allocations of a size.
type Count struct{ Size, Allocs uint64 }

// Add processes a record. Only calls that allocate count, including realloc.
func (c *Counts) Add(r *trace.Record) {
	if r.Kind != trace.KindCall || r.Call.Op != trace.OpAlloc && r.Call.Op != trace.OpMove {
		return
	}
	if c.bySize == nil {
		c.bySize = make(map[uint64]uint64)
	}
	c.bySize[r.Call.Size]++
}

// List returns the counts by ascending size.
func (c *Counts) List() []Count {
	list := make([]Count, 0, len(c.bySize))
	for _, size := range slices.Sorted(maps.Keys(c.bySize)) {
		list = append(list, Count{size, c.bySize[size]})
	}
	return list
}

// Delta is the change in the number of allocations of a size.
type Delta struct{ Size, Before, After uint64 }

// Deltas returns the sizes whose number of allocations changed, by ascending
// size.
func Deltas(before, after *Counts) []Delta {
	all := maps.Clone(before.bySize)
	if all == nil {
		all = make(map[uint64]uint64)
	}
	maps.Copy(all, after.bySize)
	var list []Delta
	for _, size := range slices.Sorted(maps.Keys(all)) {
		if d := (Delta{size, before.bySize[size], after.bySize[size]}); d.Before != d.After {
			list = append(list, d)
		}
	}
	return list
}

// page is the page size of mmap, in bytes.
const page = 4096

// Waste is the memory lost on the allocations of a size.
type Waste struct {
	Count
	// Mapped reports that the size is too large for the heap: each block has
	// its own pages, and Bytes is the unused part of the last ones. Otherwise
	// the size is so small that Overhead outweighs it, and Bytes is the sum of
	// Overhead.
	Mapped bool
	Bytes  uint64
	// Best is the next smaller size that wastes nothing, for Mapped.
	Best uint64
}

// Wasted returns the waste of the sizes that were allocated more than once, by
// ascending size. Allocations above threshold bytes are mapped. The arithmetic
// is modulo 2^64.
func (c *Counts) Wasted(threshold uint64) []Waste {
	var list []Waste
	for _, n := range c.List() {
		switch {
		case n.Allocs < 2:
		case n.Size < 2*Overhead:
			list = append(list, Waste{Count: n, Bytes: Overhead * n.Allocs})
		case n.Size > threshold:
			list = append(list, Waste{Count: n, Mapped: true, Bytes: -n.Size % page * n.Allocs, Best: n.Size / page * page})
		}
	}
	return list
}

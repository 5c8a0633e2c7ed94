// Package sizes counts allocations by their size, and says what is wasted on
// sizes that suit an allocator badly.
package sizes

import (
	"maps"
	"slices"

	"rtrace-bpf/trace"
)

// Overhead is what an allocator is taken to need for a block beside its bytes.
const Overhead = 8

// Counts are the numbers of allocations by size. The zero value has none. Their
// memory is that of the distinct sizes.
type Counts struct {
	bySize map[uint64]uint64
}

// Count is how many allocations of a size there are.
type Count struct{ Size, Allocs uint64 }

// Add takes a record. Only calls that allocate count, realloc as well.
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

// Delta is how the number of allocations of a size changed.
type Delta struct{ Size, Before, After uint64 }

// Deltas returns the sizes of which there are more or fewer than before, by
// ascending size.
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

// page is that of mmap, in bytes.
const page = 4096

// Waste is what is lost on the allocations of a size.
type Waste struct {
	Count
	// Mapped says that each is too large for the heap: it has pages of its
	// own, and Bytes are what is unused of the last ones. Otherwise it is so
	// small that Overhead is as much as the size, and Bytes are that.
	Mapped bool
	Bytes  uint64
	// Best is the next smaller size of which nothing is lost; of Mapped.
	Best uint64
}

// Wasted returns the waste on the sizes that were allocated more than once, by
// ascending size. Allocations that are larger than threshold bytes are mapped. The
// arithmetic is modulo 2^64.
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

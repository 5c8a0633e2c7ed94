package pagemap

import (
	"cmp"
	"container/heap"
	"slices"

	"rtrace-bpf/trace"
)

// Blocks collects the allocations of a trace that begin in given areas: 16
// bytes for each if Sizes is set, and the calls of the Top highest and the
// Bottom lowest blocks of each area.
type Blocks struct {
	Sizes       bool
	Top, Bottom int

	find  Find
	areas []content
	n     uint64
}

// content holds the blocks of one area.
type content struct {
	blocks   []Block
	top, low ranking
}

// Block is an allocation.
type Block struct{ Address, Size uint64 }

// NewBlocks returns Blocks for areas.
func NewBlocks(areas []Area) *Blocks {
	return &Blocks{find: NewFind(areas), areas: make([]content, len(areas))}
}

// Add processes a record. Only allocations count. It keeps no reference to the
// contents of r.
func (b *Blocks) Add(r *trace.Record) {
	c := &r.Call
	if r.Kind != trace.KindCall || c.Op != trace.OpAlloc && c.Op != trace.OpMove {
		return
	}
	i := b.find(c.ID)
	if i < 0 {
		return
	}
	b.n++
	in := &b.areas[i]
	if b.Sizes {
		in.blocks = append(in.blocks, Block{c.ID, c.Size})
	}
	in.top.highest = true
	in.top.add(r, b.n, b.Top)
	in.low.add(r, b.n, b.Bottom)
}

// Of returns the blocks of an area in the order of their addresses.
func (b *Blocks) Of(area int) []Block {
	blocks := b.areas[area].blocks
	slices.SortStableFunc(blocks, func(a, b Block) int { return cmp.Compare(a.Address, b.Address) })
	return blocks
}

// Lowest returns the calls of the lowest blocks of an area, the lowest first.
// Of blocks at the same address the older comes first.
func (b *Blocks) Lowest(area int) []*trace.Record { return b.areas[area].low.sorted() }

// Highest returns the calls of the highest blocks of an area, the highest
// first. Of blocks at the same address the younger comes first.
func (b *Blocks) Highest(area int) []*trace.Record { return b.areas[area].top.sorted() }

// ranking keeps the calls with the lowest or the highest addresses. It is a
// heap whose first call is the next to be dropped.
type ranking struct {
	highest bool
	calls   []ranked
}

type ranked struct {
	r     *trace.Record
	order uint64 // of arrival
}

// compare returns a negative number if a is nearer than b to the end that is
// kept.
func (k *ranking) compare(a, b ranked) int {
	c := cmp.Or(cmp.Compare(a.r.Call.ID, b.r.Call.ID), cmp.Compare(a.order, b.order))
	if k.highest {
		return -c
	}
	return c
}

func (k *ranking) Len() int           { return len(k.calls) }
func (k *ranking) Less(i, j int) bool { return k.compare(k.calls[i], k.calls[j]) > 0 }
func (k *ranking) Swap(i, j int)      { k.calls[i], k.calls[j] = k.calls[j], k.calls[i] }

// Push implements heap.Interface.
func (k *ranking) Push(x any) { k.calls = append(k.calls, x.(ranked)) }

// Pop implements heap.Interface.
func (k *ranking) Pop() any {
	last := k.calls[len(k.calls)-1]
	k.calls = k.calls[:len(k.calls)-1]
	return last
}

func (k *ranking) add(r *trace.Record, order uint64, limit int) {
	if limit <= 0 {
		return
	}
	if len(k.calls) == limit {
		if k.compare(ranked{r, order}, k.calls[0]) > 0 {
			return
		}
		k.calls[0] = ranked{r.Clone(), order}
		heap.Fix(k, 0)
		return
	}
	heap.Push(k, ranked{r.Clone(), order})
}

func (k *ranking) sorted() []*trace.Record {
	calls := slices.SortedFunc(slices.Values(k.calls), k.compare)
	all := make([]*trace.Record, len(calls))
	for i, c := range calls {
		all[i] = c.r
	}
	return all
}

// Package topmost finds the blocks with the highest addresses: those that keep
// a heap from shrinking.
package topmost

import (
	"cmp"
	"container/heap"
	"slices"

	"rtrace-bpf/trace"
)

// Finder keeps the calls with the highest Call.ID.
type Finder struct {
	limit int
	heap  lowest
}

// New returns a Finder of at most limit calls. limit must be positive.
func New(limit int) *Finder { return &Finder{limit: limit} }

// Add processes a record. Only calls that allocate count. It keeps no reference
// to the contents of r.
func (f *Finder) Add(r *trace.Record) {
	if r.Kind != trace.KindCall || r.Call.Op != trace.OpAlloc && r.Call.Op != trace.OpMove {
		return
	}
	if len(f.heap) < f.limit {
		heap.Push(&f.heap, r.Clone())
	} else if compare(f.heap[0], r) < 0 {
		f.heap[0] = r.Clone()
		heap.Fix(&f.heap, 0)
	}
}

// List returns the calls by ascending address, then by size and position in the
// trace.
func (f *Finder) List() []*trace.Record {
	list := slices.Clone(f.heap)
	slices.SortFunc(list, compare)
	return list
}

// compare orders by address, then by size and position in the trace.
func compare(a, b *trace.Record) int {
	return cmp.Or(cmp.Compare(a.Call.ID, b.Call.ID), cmp.Compare(a.Call.Size, b.Call.Size), cmp.Compare(a.Call.Seq, b.Call.Seq))
}

// lowest is a heap.Interface with the lowest address first.
type lowest []*trace.Record

func (l lowest) Len() int           { return len(l) }
func (l lowest) Less(i, j int) bool { return compare(l[i], l[j]) < 0 }
func (l lowest) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *lowest) Push(x any)        { *l = append(*l, x.(*trace.Record)) }

func (l *lowest) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

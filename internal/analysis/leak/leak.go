// Package leak finds the allocations of a trace that no free ends, as the
// sp-rtrace post-processor defines them:
//
//   - A block is (resource, id). An allocation makes it live; a free of a live
//     block takes the allocation out; frees are never kept.
//   - An allocation of a block that is live replaces it as what a free ends,
//     but the older allocation stays a leak.
//   - In a resource with reference counting an allocation of a live block only
//     adds a reference and is not kept, and the last free takes it out.
//   - Calls that are neither allocation nor free are kept and change nothing.
//
// There is no grace period, and no look at sizes or functions. Memory is
// bounded by the calls that are kept at any time, not by those of the trace.
package leak

import (
	"slices"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Finder takes the calls of a trace one by one and keeps those that leak.
type Finder struct {
	blocks  Blocks // Value is the number of the kept call
	calls   store
	ordinal uint64
}

// New returns an empty Finder.
func New() *Finder {
	return &Finder{blocks: *NewBlocks(), calls: newStore()}
}

// Add takes a record. Call, Resource and Exec count; Exec ends all blocks. It
// keeps nothing that r refers to.
func (f *Finder) Add(r *trace.Record) {
	switch r.Kind {
	case trace.KindCall:
		f.call(r)
	case trace.KindResource:
		f.blocks.declare(&r.Resource)
	case trace.KindExec:
		f.blocks.table.Clear()
		f.calls.clear()
	}
}

func (f *Finder) call(r *trace.Record) {
	f.ordinal++
	c := &r.Call
	switch c.Op {
	case trace.OpAlloc:
		f.alloc(r)
	case trace.OpFree:
		f.free(c.ID, c.Resource)
	case trace.OpMove:
		if c.OldID != 0 {
			f.free(c.OldID, c.Resource)
		}
		f.alloc(r)
	default:
		f.calls.add(r, f.ordinal, c.Op)
	}
}

func (f *Finder) alloc(r *trace.Record) {
	c := &r.Call
	if f.blocks.retain(c.Resource, c.ID) {
		return
	}
	n := f.calls.add(r, f.ordinal, trace.OpAlloc)
	f.blocks.table.Insert(c.Resource, c.ID, c.Size, uint64(n))
}

func (f *Finder) free(id uint64, resource uint32) {
	if n, gone := f.blocks.free(resource, id); gone {
		f.calls.remove(uint32(n))
	}
}

// Unmatched is how many frees there were of blocks that were not live. Frees of
// address 0 are not counted.
func (f *Finder) Unmatched() uint64 { return f.blocks.unmatched }

// Blocks is what is live now.
func (f *Finder) Blocks() *Blocks { return &f.blocks }

// Blocks follows which blocks are live without keeping their calls.
type Blocks struct {
	table     *live.Table
	counted   idSet // resources with reference counting
	nulls     idSet // resources in which id 0 is no block
	unmatched uint64
}

// NewBlocks returns an empty Blocks.
func NewBlocks() *Blocks {
	b := &Blocks{table: live.New()}
	b.nulls.set(0, true)
	return b
}

// Add takes a record, as [Finder.Add] does.
func (b *Blocks) Add(r *trace.Record) {
	c := &r.Call
	switch {
	case r.Kind == trace.KindResource:
		b.declare(&r.Resource)
	case r.Kind == trace.KindExec:
		b.table.Clear()
	case r.Kind != trace.KindCall:
	case c.Op == trace.OpFree:
		b.free(c.Resource, c.ID)
	case c.Op == trace.OpMove && c.OldID != 0:
		b.free(c.Resource, c.OldID)
		fallthrough
	case c.Op == trace.OpAlloc || c.Op == trace.OpMove:
		if !b.retain(c.Resource, c.ID) {
			b.table.Insert(c.Resource, c.ID, c.Size, 0)
		}
	}
}

// Live returns the number and the total size of the blocks that are live now.
func (b *Blocks) Live() (blocks int, bytes uint64) { return b.table.Len(), b.table.Bytes() }

// Unmatched is [Finder.Unmatched].
func (b *Blocks) Unmatched() uint64 { return b.unmatched }

func (b *Blocks) declare(r *trace.Resource) {
	b.counted.set(r.ID, r.RefCount)
	b.nulls.set(r.ID, r.Type == "memory")
}

// retain says whether an allocation only added a reference.
func (b *Blocks) retain(resource uint32, id uint64) bool {
	return b.counted.has(resource) && b.table.Retain(resource, id)
}

// free takes a free and returns the value of the block if that ended it.
func (b *Blocks) free(resource uint32, id uint64) (value uint64, gone bool) {
	var (
		e  live.Entry
		ok bool
	)
	if b.counted.has(resource) {
		e, ok = b.table.Release(resource, id)
	} else {
		e, ok = b.table.Remove(resource, id)
		e.Refs = 0
	}
	if !ok && (id != 0 || !b.nulls.has(resource)) {
		b.unmatched++
	}
	return e.Value, ok && e.Refs == 0
}

// idSet is a set of resource ids, most of which are small.
type idSet struct {
	small uint64
	large map[uint32]bool
}

func (s *idSet) has(id uint32) bool {
	if id < 64 {
		return s.small>>id&1 != 0
	}
	return s.large[id]
}

func (s *idSet) set(id uint32, in bool) {
	switch {
	case id < 64 && in:
		s.small |= 1 << id
	case id < 64:
		s.small &^= 1 << id
	case in:
		if s.large == nil {
			s.large = make(map[uint32]bool)
		}
		s.large[id] = true
	default:
		delete(s.large, id)
	}
}

// Leaks is a view of the kept calls in the order of the trace. It is valid
// until the next Add.
type Leaks struct {
	f     *Finder
	order []uint32
}

// Leaks returns what is kept now.
func (f *Finder) Leaks() Leaks {
	order := make([]uint32, 0, f.calls.n)
	for n := range f.calls.size {
		if f.calls.at(n).op != vacant {
			order = append(order, n)
		}
	}
	slices.SortFunc(order, func(a, b uint32) int {
		x, y := f.calls.at(a).ordinal, f.calls.at(b).ordinal
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return Leaks{f, order}
}

// Len is the number of calls.
func (l Leaks) Len() int { return len(l.order) }

// Ordinal returns the position of call i among all calls that were added,
// counted from 1.
func (l Leaks) Ordinal(i int) uint64 { return l.f.calls.at(l.order[i]).ordinal }

// Record fills r with call i. An allocation that a move made is an OpAlloc. The
// slices are valid until the next call of Record.
func (l Leaks) Record(i int, r *trace.Record) { l.f.calls.record(l.order[i], r) }

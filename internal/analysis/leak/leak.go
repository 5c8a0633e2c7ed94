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
//   - Processes have blocks of their own, and exec ends those of one process.
//
// There is no grace period, and no look at sizes or functions. Memory is
// bounded by the calls that are kept at any time, not by those of the trace.
package leak

import (
	"cmp"
	"slices"

	"rtrace-bpf/trace"
)

// Finder takes the calls of a trace one by one and keeps those that leak.
type Finder struct {
	blocks  Blocks // Value is the number of the kept call
	calls   processes[store]
	ordinal uint64
}

// New returns an empty Finder.
func New() *Finder {
	return &Finder{blocks: *NewBlocks(), calls: newProcesses(newStore)}
}

// Add takes a record. Call, Resource and Exec count; Exec ends all blocks of a
// process. It keeps nothing that r refers to.
func (f *Finder) Add(r *trace.Record) {
	switch r.Kind {
	case trace.KindCall:
		f.call(r)
	case trace.KindResource:
		f.blocks.Declare(&r.Resource)
	case trace.KindExec:
		f.blocks.tables.drop(r.PID)
		f.calls.drop(r.PID)
	}
}

func (f *Finder) call(r *trace.Record) {
	f.ordinal++
	c := &r.Call
	switch c.Op {
	case trace.OpAlloc:
		f.alloc(r)
	case trace.OpFree:
		f.free(r.PID, c.Resource, c.ID)
	case trace.OpMove:
		if c.OldID != 0 {
			f.free(r.PID, c.Resource, c.OldID)
		}
		f.alloc(r)
	default:
		f.calls.of(r.PID).add(r, f.ordinal, c.Op)
	}
}

func (f *Finder) alloc(r *trace.Record) {
	c := &r.Call
	if f.blocks.Retain(r.PID, c.Resource, c.ID) {
		return
	}
	n := f.calls.of(r.PID).add(r, f.ordinal, trace.OpAlloc)
	f.blocks.Insert(r.PID, c.Resource, c.ID, c.Size, uint64(n))
}

func (f *Finder) free(pid int32, resource uint32, id uint64) {
	if e, gone := f.blocks.Free(pid, resource, id); gone {
		f.calls.of(pid).remove(uint32(e.Value))
	}
}

// Unmatched is how many frees there were of blocks that were not live. Frees of
// address 0 are not counted.
func (f *Finder) Unmatched() uint64 { return f.blocks.unmatched }

// Blocks is what is live now.
func (f *Finder) Blocks() *Blocks { return &f.blocks }

// Leaks is a view of the kept calls in the order of the trace. It is valid
// until the next Add.
type Leaks struct {
	order []place
}

// place is where a call is kept.
type place struct {
	calls *store
	n     uint32
}

func (p place) kept() *kept { return p.calls.at(p.n) }

// Leaks returns what is kept now.
func (f *Finder) Leaks() Leaks {
	var order []place
	for _, calls := range f.calls.all {
		for n := range calls.size {
			if calls.at(n).op != vacant {
				order = append(order, place{calls, n})
			}
		}
	}
	slices.SortFunc(order, func(a, b place) int { return cmp.Compare(a.kept().ordinal, b.kept().ordinal) })
	return Leaks{order}
}

// Len is the number of calls.
func (l Leaks) Len() int { return len(l.order) }

// Ordinal returns the position of call i among all calls that were added,
// counted from 1.
func (l Leaks) Ordinal(i int) uint64 { return l.order[i].kept().ordinal }

// Record fills r with call i. An allocation that a move made is an OpAlloc. The
// slices are valid until the next call of Record.
func (l Leaks) Record(i int, r *trace.Record) { l.order[i].calls.record(l.order[i].n, r) }

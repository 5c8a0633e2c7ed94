// Package leak finds the allocations of a trace that no free ends, as the
// sp-rtrace post-processor defines them:
//
//   - A block is (resource, id). An allocation makes it live; a free of a live block removes
//     the allocation; frees are never kept.
//   - A free after an allocation of a live block ends the new allocation; the older one
//     stays a leak.
//   - In a resource with reference counting, an allocation of a live block only adds a
//     reference and is not kept, and the last free removes the allocation.
//   - Calls that neither allocate nor free are kept and change nothing.
//   - Each process has its own blocks, and exec ends those of the process.
//
// There is no grace period, and sizes and functions are not compared. Memory is
// bounded by the largest number of calls kept at a time, not by the length of
// the trace.
//
// A Finder from [NewStill] keeps the blocks that are still live by the rules of
// [live.Blocks] instead. One from [NewFed] does the same, and feeds an engine that
// judges which call sites grow.
package leak

import (
	"cmp"
	"maps"
	"slices"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Finder processes the records of a trace one by one and keeps the calls that
// leak.
type Finder struct {
	still     *still // of NewStill
	fed       *fed   // of NewFed; if both are nil, the rules are those of the post-processor
	calls     live.Processes[store]
	counted   live.IDs // resources with reference counting
	nulls     live.IDs // resources in which id 0 is not a block
	unmatched uint64
	ordinal   uint64
}

// New returns an empty Finder.
func New() *Finder {
	f := &Finder{calls: live.NewProcesses(newStore)}
	f.nulls.Set(0, true)
	return f
}

// Add processes a record. Call, Resource and Exec count, and for a Finder from
// NewStill or NewFed also Lost. Add keeps no reference to the contents of r.
func (f *Finder) Add(r *trace.Record) {
	switch {
	case f.still != nil:
		f.addStill(r)
		return
	case f.fed != nil:
		f.fed.add(r)
		return
	}
	switch r.Kind {
	case trace.KindCall:
		f.call(r)
	case trace.KindResource:
		f.counted.Set(r.Resource.ID, r.Resource.RefCount)
		f.nulls.Set(r.Resource.ID, r.Resource.Type == "memory")
	case trace.KindExec:
		f.calls.Drop(r.PID)
	}
}

func (f *Finder) call(r *trace.Record) {
	f.ordinal++
	c := &r.Call
	calls := f.calls.Of(r.PID)
	switch c.Op {
	case trace.OpAlloc:
		f.alloc(calls, r)
	case trace.OpFree:
		f.free(calls, c.Resource, c.ID)
	case trace.OpMove:
		if c.OldID != 0 {
			f.free(calls, c.Resource, c.OldID)
		}
		f.alloc(calls, r)
	default:
		calls.add(r, f.ordinal, c.Op)
	}
}

func (f *Finder) alloc(calls *store, r *trace.Record) {
	c := &r.Call
	slot, old, live := calls.find(c.Resource, c.ID)
	if live && f.counted.Has(c.Resource) {
		calls.retain(old)
		return
	}
	n := calls.add(r, f.ordinal, trace.OpAlloc)
	if live {
		calls.live.replace(slot, n)
	} else {
		calls.live.insert(slot, c.Resource, c.ID, n)
	}
}

func (f *Finder) free(calls *store, resource uint32, id uint64) {
	slot, n, live := calls.find(resource, id)
	switch {
	case live && f.counted.Has(resource) && calls.release(n):
	case live:
		calls.live.remove(slot)
		calls.remove(n)
	case id != 0 || !f.nulls.Has(resource):
		f.unmatched++
	}
}

// Unmatched returns the number of frees of blocks that were not live. Frees of
// address 0 are not counted.
func (f *Finder) Unmatched() uint64 {
	switch {
	case f.still != nil:
		return f.still.blocks.Unmatched()
	case f.fed != nil:
		return f.fed.unmatched()
	}
	return f.unmatched
}

// Live returns the number of blocks that are live now.
func (f *Finder) Live() (blocks int) {
	switch {
	case f.still != nil:
		blocks, _ = f.still.blocks.Live()
		return blocks
	case f.fed != nil:
		return f.fed.live()
	}
	for _, calls := range f.calls.All() {
		blocks += calls.live.n
	}
	return blocks
}

// Leaks is a view of the kept calls in the order of the trace. It is valid
// until the next Add.
type Leaks struct {
	order []place
}

// place is the location of a kept call.
type place struct {
	calls *store
	n     uint32
}

func (p place) kept() *kept { return p.calls.at(p.n) }

// Leaks returns the calls that are kept now.
func (f *Finder) Leaks() Leaks {
	stores := slices.Collect(maps.Values(f.calls.All()))
	switch {
	case f.still != nil:
		f.markUnknown()
	case f.fed != nil:
		f.fed.markUnknown()
		stores = append(stores, f.fed.calls)
	}
	total := 0
	for _, calls := range stores {
		total += calls.used()
	}
	order := make([]place, 0, total)
	for _, calls := range stores {
		for n := range uint32(calls.kept.Len()) {
			if calls.at(n).ordinal != 0 {
				order = append(order, place{calls, n})
			}
		}
	}
	slices.SortFunc(order, func(a, b place) int { return cmp.Compare(a.kept().ordinal, b.kept().ordinal) })
	return Leaks{order}
}

// Len returns the number of calls.
func (l Leaks) Len() int { return len(l.order) }

// Ordinal returns the position of call i among all calls that were added,
// counted from 1.
func (l Leaks) Ordinal(i int) uint64 { return l.order[i].kept().ordinal }

// Unknown reports whether the block of call i is unknown, as [live.Blocks]
// defines it. It is false without [NewStill] and [NewFed].
func (l Leaks) Unknown(i int) bool { return l.order[i].kept().unknown }

// Record stores call i in r. An allocation that was part of a move is an
// OpAlloc. The slices are valid until the next call of Record.
func (l Leaks) Record(i int, r *trace.Record) { l.order[i].calls.record(l.order[i].n, r) }

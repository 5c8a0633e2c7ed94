package live

import (
	"iter"

	"rtrace-bpf/trace"
)

// Blocks follows which blocks of a trace are live. It is the one rule of the tracer and
// of all commands except those that imitate others':
//
//   - A block is (process, resource, id). An allocation makes it live, a free ends it; a
//     realloc does both in one call.
//   - In a resource with reference counting an allocation of a live block only adds a
//     reference, and the last free ends it.
//   - An allocation at the address of a live block ends that one: its free was not seen.
//   - When the recording has a gap ([trace.Lost.Gap]), frees were not seen either, so what
//     is live there becomes unknown: it is neither live nor freed until it is freed, which
//     ends it, or its address comes again, which ends it, too.
//   - Exec ends the blocks of one process.
//
// Losses that can be counted make nothing unknown: they say how many frees are missing at
// most.
type Blocks struct {
	accounts  Processes[account]
	counted   IDs // resources with reference counting
	nulls     IDs // resources in which id 0 is no block
	unmatched uint64
	replaced  [2]uint64 // blocks, bytes
}

// account is what belongs to a process. Each block is in one of the tables, and goes from
// the first one to the second one at most once, so that gaps cost little however many
// there are.
type account struct {
	known   *Table
	unknown *Table // nil before the first gap
}

// Fate is what is known of a block.
type Fate uint8

// The fates of blocks.
const (
	Absent  Fate = iota // there is no such block
	Known               // it is live, or was when it ended
	Unknown             // it was live when a gap began
)

// NewBlocks returns a Blocks without blocks.
func NewBlocks() *Blocks {
	b := &Blocks{accounts: NewProcesses(func() *account { return &account{known: New()} })}
	b.nulls.Set(0, true)
	return b
}

// Add takes a record and keeps no values with blocks. Callers that do use the other
// methods.
func (b *Blocks) Add(r *trace.Record) {
	c := &r.Call
	switch {
	case r.Kind == trace.KindResource:
		b.Declare(&r.Resource)
	case r.Kind == trace.KindExec:
		b.accounts.Drop(r.PID)
	case r.Kind == trace.KindLost:
		b.Lost(r, nil)
	case r.Kind != trace.KindCall:
	case c.Op == trace.OpFree:
		b.Free(r.PID, c.Resource, c.ID)
	case c.Op == trace.OpMove && c.OldID != 0:
		b.Free(r.PID, c.Resource, c.OldID)
		fallthrough
	case c.Op == trace.OpAlloc || c.Op == trace.OpMove:
		if !b.Retain(r.PID, c.Resource, c.ID) {
			b.Insert(r.PID, c.Resource, c.ID, c.Size, 0)
		}
	}
}

// Declare takes what the trace says of a resource.
func (b *Blocks) Declare(r *trace.Resource) {
	b.counted.Set(r.ID, r.RefCount)
	b.nulls.Set(r.ID, r.Type == "memory")
}

// Retain reports whether an allocation only adds a reference to a live block, and does
// so. Other allocations are for Insert.
func (b *Blocks) Retain(pid int32, resource uint32, id uint64) bool {
	return b.counted.Has(resource) && b.accounts.Of(pid).known.Retain(resource, id)
}

// Insert makes a block live, with a value of the caller's. If there is one, it ends the
// block that had its address, and returns that with its fate.
func (b *Blocks) Insert(pid int32, resource uint32, id, size, value uint64) (old Entry, fate Fate) {
	a := b.accounts.Of(pid)
	if a.unknown != nil {
		if e, ok := a.unknown.Remove(resource, id); ok {
			old, fate = e, Unknown
		}
	}
	if e, replaced := a.known.Insert(resource, id, size, value); replaced {
		b.replaced[0]++
		b.replaced[1] += e.Size
		return e, Known
	}
	return old, fate
}

// Free takes a free. If that ended a block, it returns the block with its fate.
func (b *Blocks) Free(pid int32, resource uint32, id uint64) (Entry, Fate) {
	a, counted := b.accounts.Of(pid), b.counted.Has(resource)
	if e, ok := release(a.known, resource, id, counted); ok {
		return e, fateOf(e, Known)
	}
	if a.unknown != nil {
		if e, ok := release(a.unknown, resource, id, counted); ok {
			return e, fateOf(e, Unknown)
		}
	}
	if id != 0 || !b.nulls.Has(resource) {
		b.unmatched++
	}
	return Entry{}, Absent
}

// release takes a reference off, or all if they are not counted, and reports whether
// there is such a block.
func release(t *Table, resource uint32, id uint64, counted bool) (Entry, bool) {
	if counted {
		return t.Release(resource, id)
	}
	e, ok := t.Remove(resource, id)
	e.Refs = 0
	return e, ok
}

func fateOf(e Entry, fate Fate) Fate {
	if e.Refs != 0 {
		return Absent // it goes on
	}
	return fate
}

// Lost takes a loss. If that is a gap, what is live of its process becomes unknown; each
// of those blocks is given to became, which may be nil.
func (b *Blocks) Lost(r *trace.Record, became func(Entry)) {
	if !r.Lost.Gap() {
		return
	}
	for _, a := range b.accounts.Concerned(r.PID) {
		if became != nil {
			for e := range a.known.All() {
				became(e)
			}
		}
		if a.unknown == nil || a.unknown.Len() == 0 {
			a.known, a.unknown = New(), a.known
			continue
		}
		for e := range a.known.All() {
			a.unknown.adopt(e)
		}
		a.known.Clear()
	}
}

// Exec ends the blocks of a process, of all if pid is 0. The result yields the processes
// and what was live or unknown of them, in no particular order.
func (b *Blocks) Exec(pid int32) iter.Seq2[int32, iter.Seq2[Entry, Fate]] {
	return entries(b.accounts.Drop(pid))
}

// All yields the processes and what is live or unknown of them, in no particular order.
func (b *Blocks) All() iter.Seq2[int32, iter.Seq2[Entry, Fate]] { return entries(b.accounts.All()) }

func entries(of map[int32]*account) iter.Seq2[int32, iter.Seq2[Entry, Fate]] {
	return func(yield func(int32, iter.Seq2[Entry, Fate]) bool) {
		for pid, a := range of {
			if !yield(pid, a.all) {
				return
			}
		}
	}
}

func (a *account) all(yield func(Entry, Fate) bool) {
	for e := range a.known.All() {
		if !yield(e, Known) {
			return
		}
	}
	if a.unknown == nil {
		return
	}
	for e := range a.unknown.All() {
		if !yield(e, Unknown) {
			return
		}
	}
}

// Get returns a block that is live or unknown, with its fate.
func (b *Blocks) Get(pid int32, resource uint32, id uint64) (Entry, Fate) {
	a := b.accounts.Of(pid)
	if e, ok := a.known.Get(resource, id); ok {
		return e, Known
	}
	if a.unknown != nil {
		if e, ok := a.unknown.Get(resource, id); ok {
			return e, Unknown
		}
	}
	return Entry{}, Absent
}

// Live returns the number and the total size of the blocks that are live now.
func (b *Blocks) Live() (blocks int, bytes uint64) {
	for _, a := range b.accounts.All() {
		blocks += a.known.Len()
		bytes += a.known.Bytes()
	}
	return blocks, bytes
}

// Unknown returns the number and the total size of the blocks that are unknown now.
func (b *Blocks) Unknown() (blocks int, bytes uint64) {
	for _, a := range b.accounts.All() {
		if a.unknown != nil {
			blocks += a.unknown.Len()
			bytes += a.unknown.Bytes()
		}
	}
	return blocks, bytes
}

// Unmatched is how many frees there were of blocks that were neither live nor unknown.
// Frees of address 0 are not counted.
func (b *Blocks) Unmatched() uint64 { return b.unmatched }

// Replaced returns the number and the total size of the live blocks that ended since
// another one began at their address. Unknown ones are not counted.
func (b *Blocks) Replaced() (blocks, bytes uint64) { return b.replaced[0], b.replaced[1] }

package live

import (
	"iter"

	"rtrace-bpf/trace"
)

// Blocks tracks which blocks of a trace are live. The tracer and all commands
// use its rules, except commands that imitate other programs:
//
//   - A block is (process, resource, id). An allocation makes it live, a free ends it; a
//     realloc does both in one call.
//   - In a resource with reference counting, an allocation of a live block only adds a
//     reference, and the last free ends the block.
//   - An allocation at the address of a live block ends that block: its free is missing.
//   - A gap in the recording ([trace.Lost.Gap]) may have hidden frees. The blocks that are
//     live at the gap become unknown: they are neither live nor freed. A free, or an
//     allocation at the same address, ends an unknown block.
//   - Exec ends the blocks of one process.
//
// Counted losses make no block unknown: they are an upper bound for the missing
// frees.
type Blocks struct {
	accounts  Processes[account]
	counted   IDs // resources with reference counting
	nulls     IDs // resources in which id 0 is not a block
	unmatched uint64
	replaced  [2]uint64 // blocks, bytes
}

// account holds the blocks of a process. Each block is in one of the tables and
// moves from the first to the second at most once, so the cost of gaps is small
// however many there are.
type account struct {
	known   *Table
	unknown *Table // nil before the first gap
}

// Fate is the state of a block.
type Fate uint8

// The fates of blocks.
const (
	Absent  Fate = iota // the block does not exist
	Known               // the block is live, or was live when it ended
	Unknown             // the block was live when a gap began
)

// NewBlocks returns an empty Blocks.
func NewBlocks() *Blocks {
	b := &Blocks{accounts: NewProcesses(func() *account { return &account{known: New()} })}
	b.nulls.Set(0, true)
	return b
}

// Add processes a record and stores no values with blocks. Callers that need
// values use the other methods.
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

// Declare processes the declaration of a resource.
func (b *Blocks) Declare(r *trace.Resource) {
	b.counted.Set(r.ID, r.RefCount)
	b.nulls.Set(r.ID, r.Type == "memory")
}

// Retain adds a reference if the allocation of a block only adds one, and
// reports whether it did. Other allocations must be passed to Insert.
func (b *Blocks) Retain(pid int32, resource uint32, id uint64) bool {
	return b.counted.Has(resource) && b.accounts.Of(pid).known.Retain(resource, id)
}

// Insert makes a block live and stores the caller's value with it. If a block
// was at that address, Insert ends and returns it with its fate.
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

// Free processes a free. If it ends a block, Free returns the block with its
// fate.
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

// release removes a reference, or all if they are not counted. It reports
// whether the block exists.
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
		return Absent // the block still has references
	}
	return fate
}

// Lost processes a loss. If it is a gap, the live blocks of its process become
// unknown. became, which may be nil, is called with each of them.
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

// Exec ends the blocks of a process, or of all processes if pid is 0. The
// result yields the processes with their blocks that were live or unknown, in
// no particular order.
func (b *Blocks) Exec(pid int32) iter.Seq2[int32, iter.Seq2[Entry, Fate]] {
	return entries(b.accounts.Drop(pid))
}

// All yields the processes with their live and unknown blocks, in no particular
// order.
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

// Get returns a live or unknown block with its fate.
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

// Unmatched returns the number of frees of blocks that were neither live nor
// unknown. Frees of address 0 are not counted.
func (b *Blocks) Unmatched() uint64 { return b.unmatched }

// Replaced returns the number and the total size of the live blocks that ended
// because another one began at their address. Unknown blocks are not counted.
func (b *Blocks) Replaced() (blocks, bytes uint64) { return b.replaced[0], b.replaced[1] }

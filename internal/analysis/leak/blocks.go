package leak

import (
	"iter"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Blocks follows which blocks are live without keeping their calls.
type Blocks struct {
	tables    processes[live.Table]
	counted   idSet // resources with reference counting
	nulls     idSet // resources in which id 0 is no block
	unmatched uint64
}

// NewBlocks returns an empty Blocks.
func NewBlocks() *Blocks {
	b := &Blocks{tables: newProcesses(live.New)}
	b.nulls.set(0, true)
	return b
}

// Add takes a record, as [Finder.Add] does.
func (b *Blocks) Add(r *trace.Record) {
	c := &r.Call
	switch {
	case r.Kind == trace.KindResource:
		b.Declare(&r.Resource)
	case r.Kind == trace.KindExec:
		b.tables.drop(r.PID)
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

// Live returns the number and the total size of the blocks that are live now.
func (b *Blocks) Live() (blocks int, bytes uint64) {
	for _, t := range b.tables.all {
		blocks += t.Len()
		bytes += t.Bytes()
	}
	return blocks, bytes
}

// Exec ends the blocks of a process, of all if pid is 0. The result yields the
// processes and what was live in them, in no particular order.
func (b *Blocks) Exec(pid int32) iter.Seq2[int32, iter.Seq[live.Entry]] {
	gone := b.tables.drop(pid)
	return func(yield func(int32, iter.Seq[live.Entry]) bool) {
		for of, t := range gone {
			if !yield(of, t.All()) {
				return
			}
		}
	}
}

// Unmatched is as [Finder.Unmatched] says.
func (b *Blocks) Unmatched() uint64 { return b.unmatched }

// Declare takes what the trace says of a resource.
func (b *Blocks) Declare(r *trace.Resource) {
	b.counted.set(r.ID, r.RefCount)
	b.nulls.set(r.ID, r.Type == "memory")
}

// Retain says whether an allocation only adds a reference to a live block, and
// does so. Other allocations are for Insert.
func (b *Blocks) Retain(pid int32, resource uint32, id uint64) bool {
	return b.counted.has(resource) && b.tables.of(pid).Retain(resource, id)
}

// Insert makes a block live, with a value of the caller's. If it is live
// already, what it replaces stays a leak that no free can end; it is returned.
func (b *Blocks) Insert(pid int32, resource uint32, id, size, value uint64) (old live.Entry, replaced bool) {
	return b.tables.of(pid).Insert(resource, id, size, value)
}

// Free takes a free and returns the block if that ended it.
func (b *Blocks) Free(pid int32, resource uint32, id uint64) (e live.Entry, gone bool) {
	t := b.tables.of(pid)
	var ok bool
	if b.counted.has(resource) {
		e, ok = t.Release(resource, id)
	} else {
		e, ok = t.Remove(resource, id)
		e.Refs = 0
	}
	if !ok && (id != 0 || !b.nulls.has(resource)) {
		b.unmatched++
	}
	return e, ok && e.Refs == 0
}

// processes holds something for each process of a trace. Most traces have one.
type processes[T any] struct {
	all    map[int32]*T
	create func() *T
	pid    int32
	latest *T // of pid
}

func newProcesses[T any](create func() *T) processes[T] {
	return processes[T]{all: make(map[int32]*T), create: create}
}

// of returns what belongs to a process, made anew if need be.
func (p *processes[T]) of(pid int32) *T {
	if p.latest != nil && p.pid == pid {
		return p.latest
	}
	return p.find(pid)
}

func (p *processes[T]) find(pid int32) *T {
	t := p.all[pid]
	if t == nil {
		t = p.create()
		p.all[pid] = t
	}
	p.pid, p.latest = pid, t
	return t
}

// drop forgets what belongs to a process, and to all of them for one without an
// id, and returns that. In a trace that says only of some records which process
// they are of, a process that is not known is the one without an id.
func (p *processes[T]) drop(pid int32) (gone map[int32]*T) {
	p.latest = nil
	if pid == 0 {
		gone, p.all = p.all, make(map[int32]*T)
		return gone
	}
	if pid > 0 && p.all[pid] == nil {
		pid = 0
	}
	if t := p.all[pid]; t != nil {
		delete(p.all, pid)
		return map[int32]*T{pid: t}
	}
	return nil
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

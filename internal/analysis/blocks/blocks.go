// Package blocks follows the blocks of one kind of resource through a trace: it
// numbers the calls and says of each which block it ended and whether one
// began. The analyses that draw or count lives of blocks stand on it.
//
//   - Every call of a trace is an event, whatever it did and to which resource;
//     events are numbered from 1. In an MTRC trace that is the number that
//     mptrace prints.
//   - A move ends its old block and begins the new one in one event.
//   - An allocation where a block is live ends that one: its free was not seen.
//   - A free of what is not live is counted and ends nothing.
//   - In a resource with reference counting only the first allocation begins a
//     block and only the last free ends it.
//   - After an exec there are no blocks.
package blocks

import (
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Memory is the type of the resource that blocks of memory are declared with.
// Calls without a resource are of memory, too.
const Memory = "memory"

// Follower follows the blocks of one type of resource.
type Follower struct {
	kind      string
	table     *live.Table
	resources map[uint32]resource
	event     uint64
	unmatched uint64
	replaced  uint64
}

type resource struct {
	followed, counted bool
}

// Step is what a call does to the blocks that are followed.
type Step struct {
	// Ended says that a block ended, Old is which one.
	Ended bool
	Old   live.Entry
	// Begins says that a block begins, in Call.ID with Call.Size bytes. It does
	// so with the call of [Follower.Begin], which must follow.
	Begins bool
}

// New returns a Follower of the resources of the given type, which are those
// that are declared as such. Calls of undeclared resources are followed if kind
// is [Memory].
func New(kind string) *Follower {
	return &Follower{kind: kind, table: live.New(), resources: make(map[uint32]resource)}
}

// Add takes a record and returns what it does. It keeps nothing that r refers to.
func (f *Follower) Add(r *trace.Record) Step {
	switch r.Kind {
	case trace.KindCall:
		f.event++
		return f.call(&r.Call)
	case trace.KindResource:
		f.resources[r.Resource.ID] = resource{r.Resource.Type == f.kind, r.Resource.RefCount}
	case trace.KindExec:
		f.table.Clear()
	}
	return Step{}
}

func (f *Follower) call(c *trace.Call) Step {
	res := resource{followed: f.kind == Memory}
	if len(f.resources) > 0 {
		if declared, ok := f.resources[c.Resource]; ok {
			res = declared
		}
	}
	if !res.followed {
		return Step{}
	}
	var s Step
	switch c.Op {
	case trace.OpAlloc:
		s.Begins = !res.counted || !f.table.Retain(c.Resource, c.ID)
	case trace.OpFree:
		s.Old, s.Ended = f.free(c.Resource, c.ID, res.counted)
	case trace.OpMove:
		if c.OldID != 0 {
			s.Old, s.Ended = f.free(c.Resource, c.OldID, res.counted)
		}
		s.Begins = !res.counted || !f.table.Retain(c.Resource, c.ID)
	}
	return s
}

func (f *Follower) free(resource uint32, id uint64, counted bool) (live.Entry, bool) {
	if !counted {
		e, ok := f.table.Remove(resource, id)
		if !ok && id != 0 {
			f.unmatched++
		}
		return e, ok
	}
	e, ok := f.table.Release(resource, id)
	if !ok {
		f.unmatched++
	}
	return e, ok && e.Refs == 0
}

// Begin makes the block of a call live that Add returned Begins for, with a
// value of the caller's own. If a block was live there it ends and is returned.
func (f *Follower) Begin(c *trace.Call, value uint64) (old live.Entry, replaced bool) {
	old, replaced = f.table.Insert(c.Resource, c.ID, c.Size, value)
	if replaced {
		f.replaced++
	}
	return old, replaced
}

// Event is the number of the last call.
func (f *Follower) Event() uint64 { return f.event }

// Live returns the number and the total size of the blocks that are live now.
func (f *Follower) Live() (blocks, bytes uint64) { return uint64(f.table.Len()), f.table.Bytes() }

// Table is what is live now. It must not be changed.
func (f *Follower) Table() *live.Table { return f.table }

// Unmatched is how many frees there were of blocks that were not live, those of
// address 0 not counted.
func (f *Follower) Unmatched() uint64 { return f.unmatched }

// Replaced is how many blocks ended because another began at their address.
func (f *Follower) Replaced() uint64 { return f.replaced }

// Thread returns the id of the thread that made a call, or what the format
// has instead; 0 if neither is known.
func Thread(r *trace.Record) uint64 {
	if r.TID > 0 {
		return uint64(r.TID)
	}
	return r.Call.Thread
}

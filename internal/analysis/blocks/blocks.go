// Package blocks follows the blocks of one kind of resource through a trace: it
// numbers the calls and says of each which block it ended and whether one
// began. The analyses that draw or count lives of blocks stand on it.
//
//   - Every call of a trace is an event, whatever it did and to which resource;
//     events are numbered from 1. In an MTRC trace that is the number that
//     mptrace prints.
//   - A move ends its old block and begins the new one in one event.
//   - A free of what is not live is counted and ends nothing.
//   - After an exec there are no blocks.
//
// Which blocks are live or unknown is what [live.Blocks] says.
package blocks

import (
	"iter"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Memory is the type of the resource that blocks of memory are declared with.
// Calls without a resource are of memory, too.
const Memory = "memory"

// Follower follows the blocks of one type of resource.
type Follower struct {
	kind     string
	blocks   *live.Blocks
	followed map[uint32]bool // resources that are declared
	event    uint64
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
	return &Follower{kind: kind, blocks: live.NewBlocks(), followed: make(map[uint32]bool)}
}

// Add takes a record and returns what it does. It keeps nothing that r refers to.
func (f *Follower) Add(r *trace.Record) Step {
	switch r.Kind {
	case trace.KindCall:
		f.event++
		return f.call(&r.Call)
	case trace.KindResource:
		f.followed[r.Resource.ID] = r.Resource.Type == f.kind
		f.blocks.Declare(&r.Resource)
	case trace.KindExec:
		f.blocks.Exec(0)
	case trace.KindLost:
		f.blocks.Lost(&trace.Record{Lost: r.Lost}, nil) // there is one process
	}
	return Step{}
}

func (f *Follower) call(c *trace.Call) Step {
	followed := f.kind == Memory
	if len(f.followed) > 0 {
		if declared, ok := f.followed[c.Resource]; ok {
			followed = declared
		}
	}
	if !followed {
		return Step{}
	}
	var s Step
	switch c.Op {
	case trace.OpAlloc:
		s.Begins = !f.blocks.Retain(0, c.Resource, c.ID)
	case trace.OpFree:
		s.Old, s.Ended = f.free(c.Resource, c.ID)
	case trace.OpMove:
		if c.OldID != 0 {
			s.Old, s.Ended = f.free(c.Resource, c.OldID)
		}
		s.Begins = !f.blocks.Retain(0, c.Resource, c.ID)
	}
	return s
}

func (f *Follower) free(resource uint32, id uint64) (live.Entry, bool) {
	e, fate := f.blocks.Free(0, resource, id)
	return e, fate != live.Absent
}

// Begin makes the block of a call live that Add returned Begins for, with a
// value of the caller's own. If a block was there it ends and is returned.
func (f *Follower) Begin(c *trace.Call, value uint64) (old live.Entry, replaced bool) {
	old, fate := f.blocks.Insert(0, c.Resource, c.ID, c.Size, value)
	return old, fate != live.Absent
}

// Event is the number of the last call.
func (f *Follower) Event() uint64 { return f.event }

// Live returns the number and the total size of the blocks that are live or unknown now.
func (f *Follower) Live() (blocks, bytes uint64) {
	n, known := f.blocks.Live()
	unknown, more := f.blocks.Unknown()
	return uint64(n + unknown), known + more
}

// Unknown returns the number and the total size of those that are unknown.
func (f *Follower) Unknown() (blocks, bytes uint64) {
	n, bytes := f.blocks.Unknown()
	return uint64(n), bytes
}

// All yields the blocks that are live or unknown now, in no particular order.
func (f *Follower) All() iter.Seq[live.Entry] {
	return func(yield func(live.Entry) bool) {
		for _, blocks := range f.blocks.All() {
			for e := range blocks {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Unmatched is how many frees there were of blocks that were not live, those of
// address 0 not counted.
func (f *Follower) Unmatched() uint64 { return f.blocks.Unmatched() }

// Replaced is how many live blocks ended because another began at their address.
func (f *Follower) Replaced() uint64 {
	n, _ := f.blocks.Replaced()
	return n
}

// Thread returns the id of the thread that made a call, or what the format
// has instead; 0 if neither is known.
func Thread(r *trace.Record) uint64 {
	if r.TID > 0 {
		return uint64(r.TID)
	}
	return r.Call.Thread
}

// Package blocks follows the blocks of one type of resource through a trace. It
// numbers the calls and returns for each call which block it ended and whether
// it began one. The analyses that draw or count the lifetimes of blocks use it.
//
//   - Every call of a trace is an event, whatever its operation and resource; events are
//     numbered from 1. In an MTRC trace these are the numbers that mptrace prints.
//   - A move ends its old block and begins the new one in one event.
//   - A free of a block that is not live is counted and ends nothing.
//   - After an exec there are no blocks.
//
// [live.Blocks] defines which blocks are live or unknown.
package blocks

import (
	"iter"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Memory is the resource type of memory blocks. Calls without a resource are
// memory, too.
const Memory = "memory"

// Follower follows the blocks of one type of resource.
type Follower struct {
	kind     string
	blocks   *live.Blocks
	followed map[uint32]bool // declared resources, and whether they are of this kind
	event    uint64
}

// Step is the effect of a call on the followed blocks.
type Step struct {
	// Ended reports that the call ended a block, which is Old.
	Ended bool
	Old   live.Entry
	// Begins reports that the call begins a block at Call.ID with Call.Size
	// bytes. The caller must then make it live with [Follower.Begin].
	Begins bool
}

// New returns a Follower of the resources that are declared with the given
// type. If kind is [Memory], calls of undeclared resources are followed, too.
func New(kind string) *Follower {
	return &Follower{kind: kind, blocks: live.NewBlocks(), followed: make(map[uint32]bool)}
}

// Add processes a record and returns its effect. It keeps no reference to the
// contents of r.
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

// Begin makes the block of a call live for which Add returned Begins, and
// stores the caller's value with it. If a block was live at that address, Begin
// ends and returns it.
func (f *Follower) Begin(c *trace.Call, value uint64) (old live.Entry, replaced bool) {
	old, fate := f.blocks.Insert(0, c.Resource, c.ID, c.Size, value)
	return old, fate != live.Absent
}

// Event returns the number of the last call.
func (f *Follower) Event() uint64 { return f.event }

// Live returns the number and the total size of the blocks that are live or
// unknown now.
func (f *Follower) Live() (blocks, bytes uint64) {
	n, known := f.blocks.Live()
	unknown, more := f.blocks.Unknown()
	return uint64(n + unknown), known + more
}

// Unknown returns the number and the total size of the blocks that are unknown.
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

// Unmatched returns the number of frees of blocks that were not live, without
// frees of address 0.
func (f *Follower) Unmatched() uint64 { return f.blocks.Unmatched() }

// Replaced returns the number of live blocks that ended because another one
// began at their address.
func (f *Follower) Replaced() uint64 {
	n, _ := f.blocks.Replaced()
	return n
}

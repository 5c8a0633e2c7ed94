// Package usage sums up the allocations of groups: the total, and the live,
// peak and temporary amounts. The caller assigns blocks to groups.
//
// [live.Blocks] defines which blocks are live or unknown, and [live.Temporary]
// which are temporary. Of a sampled resource only some allocations are in the
// trace; these count as live. Memory grows with the live blocks and the groups.
package usage

import (
	"slices"
	"strings"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Usage is the amounts of a group.
type Usage struct {
	Allocated live.Amount // all allocations
	Temporary live.Amount // temporary ones
	Live      live.Amount // now
	// Unknown was live at a gap in the recording and may have been freed in it.
	// It is not in Live, but counts as live in Peak and AtPeak.
	Unknown live.Amount
	Peak    live.Amount // when most bytes of the group were live
	AtPeak  live.Amount // when most bytes of all groups were live
}

// Add adds v to u. The sum of peaks is an upper bound, because they may be at
// different times.
func (u *Usage) Add(v *Usage) {
	for _, s := range [...]struct {
		to   *live.Amount
		from live.Amount
	}{
		{&u.Allocated, v.Allocated}, {&u.Temporary, v.Temporary}, {&u.Live, v.Live}, {&u.Unknown, v.Unknown}, {&u.Peak, v.Peak}, {&u.AtPeak, v.AtPeak},
	} {
		s.to.Add(s.from)
	}
}

// None is the group of blocks that are followed but not counted.
const None = -1

// Counter sums up the groups of a trace.
type Counter struct {
	group     func(*trace.Record) int
	blocks    *live.Blocks // Value is a mark
	sums      Ledger
	sampled   live.IDs
	samples   live.Processes[map[int]live.Amount] // of sampled resources: by group
	kinds     kinds
	temporary live.Temporary
	calls     Calls
	sized     bool
	ended     func(group int, blocks uint64) // may be nil
}

// kinds numbers the types of resources.
type kinds struct {
	names []string
	of    map[uint32]uint32 // by resource; undeclared ones have number 0
}

func (k *kinds) declare(r *trace.Resource) {
	if k.of == nil {
		k.of, k.names = make(map[uint32]uint32), []string{"memory"}
	}
	n := slices.Index(k.names, r.Type)
	if n < 0 {
		n = len(k.names)
		k.names = append(k.names, strings.Clone(r.Type))
	}
	k.of[r.ID] = uint32(n)
}

// mark packs the values that are stored with a block: its group plus 1, or 0,
// and its number in live.Temporary.
func mark(group int, number uint32) uint64 { return uint64(group+1)<<32 | uint64(number) }

func groupOf(mark uint64) int { return int(mark>>32) - 1 }

// New returns an empty Counter. It calls group for each allocation that begins
// a block. group returns the number of the block's group, counted from 0 and
// below 1<<32, or None.
func New(group func(*trace.Record) int) *Counter {
	c := &Counter{group: group, blocks: live.NewBlocks()}
	c.samples = live.NewProcesses(func() *map[int]live.Amount { return &map[int]live.Amount{} })
	return c
}

// OnEnd makes the counter call f when blocks of a group end, for whatever
// reason.
func (c *Counter) OnEnd(f func(group int, blocks uint64)) { c.ended = f }

// Add processes a record. Call, Resource, Lost and Exec count. It keeps no
// reference to the contents of r.
func (c *Counter) Add(r *trace.Record) {
	switch r.Kind {
	case trace.KindResource:
		c.blocks.Declare(&r.Resource)
		c.sampled.Set(r.Resource.ID, r.Resource.Sampled)
		c.kinds.declare(&r.Resource)
	case trace.KindExec:
		c.exec(r.PID)
	case trace.KindLost:
		c.blocks.Lost(r, c.unknown)
	case trace.KindCall:
		c.call(r)
	}
}

func (c *Counter) call(r *trace.Record) {
	k := &r.Call
	c.calls.Add(k)
	switch k.Op {
	case trace.OpFree:
		c.free(r, k.ID)
	case trace.OpMove:
		if k.OldID != 0 {
			c.free(r, k.OldID)
		}
		c.alloc(r)
	case trace.OpAlloc:
		c.alloc(r)
	}
}

func (c *Counter) alloc(r *trace.Record) {
	k := &r.Call
	if c.blocks.Retain(r.PID, k.Resource, k.ID) {
		return
	}
	c.sized = c.sized || k.Size != 0
	n := c.group(r)
	if c.sampled.Has(k.Resource) {
		c.sample(r.PID, n, k.Size)
	} else {
		number := c.temporary.Allocated(r, c.kinds.of[k.Resource])
		old, fate := c.blocks.Insert(r.PID, k.Resource, k.ID, k.Size, mark(n, number))
		c.end(&old, fate)
	}
	if n >= 0 {
		c.sums.Began(n, k.Size)
	}
}

// sample records a block that is live until the process runs exec.
func (c *Counter) sample(pid int32, n int, size uint64) {
	if n < 0 {
		return
	}
	of := *c.samples.Of(pid)
	a := of[n]
	a.AddBlock(size)
	of[n] = a
}

func (c *Counter) free(r *trace.Record, id uint64) {
	old, fate := c.blocks.Free(r.PID, r.Call.Resource, id)
	c.end(&old, fate)
	n := groupOf(old.Value)
	if fate != live.Known || n < 0 || !c.temporary.Freed(r, c.kinds.of[r.Call.Resource], uint32(old.Value)) {
		return
	}
	c.sums.Temporary(n, old.Size)
}

// end subtracts an ended block from its group.
func (c *Counter) end(e *live.Entry, fate live.Fate) {
	n := groupOf(e.Value)
	if n < 0 {
		return
	}
	c.sums.Ended(n, e.Size, fate)
	if c.ended != nil && fate != live.Absent {
		c.ended(n, 1)
	}
}

// unknown counts a block that became unknown.
func (c *Counter) unknown(e live.Entry) {
	if n := groupOf(e.Value); n >= 0 {
		c.sums.Unknown(n, e.Size)
	}
}

// exec ends all blocks of a process, as live.Blocks does.
func (c *Counter) exec(pid int32) {
	for _, blocks := range c.blocks.Exec(pid) {
		for e, fate := range blocks {
			c.end(&e, fate)
		}
	}
	for _, of := range c.samples.Drop(pid) {
		for n, size := range *of {
			c.sums.Dropped(n, size)
			if c.ended != nil {
				c.ended(n, size.Blocks)
			}
		}
	}
}

// Len returns one more than the largest number of a group with blocks.
func (c *Counter) Len() int { return c.sums.Len() }

// Of returns the usage of a group so far.
func (c *Counter) Of(n int) Usage { return c.sums.Of(n) }

// Total returns the usage of all groups so far. Its Peak and AtPeak are the
// same.
func (c *Counter) Total() Usage { return c.sums.Total() }

// Peaks returns how often the live bytes of all groups reached a new maximum.
func (c *Counter) Peaks() uint64 { return c.sums.peaks }

// Calls returns the numbers of all calls, including those of no group.
func (c *Counter) Calls() Calls { return c.calls }

// Unmatched returns the number of frees of blocks that were not live.
func (c *Counter) Unmatched() uint64 { return c.blocks.Unmatched() }

// Replaced returns the live blocks that ended because another one began at
// their address.
func (c *Counter) Replaced() live.Amount {
	blocks, bytes := c.blocks.Replaced()
	return live.Amount{Blocks: blocks, Bytes: bytes}
}

// Sized reports whether any allocation had a size.
func (c *Counter) Sized() bool { return c.sized }

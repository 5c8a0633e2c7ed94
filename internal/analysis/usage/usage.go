// Package usage sums up what groups of allocations took: all of it, what is live,
// what was when most was, and what was freed at once. Who is in a group is the
// caller's to say.
//
// Which blocks are live is what package leak says: a move frees and allocates,
// exec frees all blocks of a process, and an allocation of a block that is live
// leaves the older one live, which no free can end. Memory is that of the live
// blocks and of the groups.
package usage

import (
	"rtrace-bpf/internal/analysis/leak"
	"rtrace-bpf/trace"
)

// Amount is a number of blocks and the sum of their sizes, modulo 2^64.
type Amount struct {
	Blocks, Bytes uint64
}

func (a *Amount) add(b Amount) {
	a.Blocks += b.Blocks
	a.Bytes += b.Bytes
}

func (a *Amount) sub(b Amount) {
	a.Blocks -= b.Blocks
	a.Bytes -= b.Bytes
}

// above says whether a is more: more bytes, or as many in more blocks.
func (a Amount) above(b Amount) bool {
	return a.Bytes > b.Bytes || a.Bytes == b.Bytes && a.Blocks > b.Blocks
}

// Usage is what a group took.
type Usage struct {
	Allocated Amount // all of it
	// Temporary is what of that was freed, or moved, by the next call that the
	// thread of the allocation made.
	Temporary Amount
	Live      Amount // now
	Peak      Amount // when most bytes of the group were live
	AtPeak    Amount // when most bytes of all groups were live
}

// Add adds v to u. Of peaks that were at different times it is a bound.
func (u *Usage) Add(v *Usage) {
	for _, s := range [...]struct {
		to   *Amount
		from Amount
	}{
		{&u.Allocated, v.Allocated}, {&u.Temporary, v.Temporary}, {&u.Live, v.Live}, {&u.Peak, v.Peak}, {&u.AtPeak, v.AtPeak},
	} {
		s.to.add(s.from)
	}
}

// None is the group of blocks that are followed but not counted.
const None = -1

// Counter takes the records of a trace and sums up groups.
type Counter struct {
	group  func(*trace.Record) int
	blocks *leak.Blocks // Value is the number of the group plus 1
	groups []group
	total  Usage
	peaks  uint64 // how often the bytes of all groups reached a new maximum
	lost   map[int32]map[uint64]Amount
	latest latest
	frees  uint64
	allocs uint64
	sized  bool
}

// group is a Usage whose AtPeak is out of date unless peaks is Counter.peaks.
// Then it is Live, which has not changed since.
type group struct {
	Usage
	peaks uint64
}

// New returns a Counter of nothing. For each allocation that begins a block
// it calls group, which returns the number of the group that the block belongs
// to, counted from 0, or None.
func New(group func(*trace.Record) int) *Counter {
	return &Counter{group: group, blocks: leak.NewBlocks(), lost: make(map[int32]map[uint64]Amount)}
}

// Add takes a record. Call, Resource and Exec count. It keeps nothing that r
// refers to.
func (c *Counter) Add(r *trace.Record) {
	switch r.Kind {
	case trace.KindResource:
		c.blocks.Declare(&r.Resource)
	case trace.KindExec:
		c.exec(r.PID)
	case trace.KindCall:
		c.call(r)
	}
}

func (c *Counter) call(r *trace.Record) {
	k := &r.Call
	switch k.Op {
	case trace.OpFree:
		c.frees++
		c.free(r, k.ID)
	case trace.OpMove:
		if k.OldID != 0 {
			c.frees++
			c.free(r, k.OldID)
		}
		c.alloc(r)
	case trace.OpAlloc:
		c.alloc(r)
	default:
		c.latest.forget(r)
	}
}

func (c *Counter) alloc(r *trace.Record) {
	k := &r.Call
	if c.blocks.Retain(r.PID, k.Resource, k.ID) {
		c.latest.forget(r)
		return
	}
	c.allocs++
	c.sized = c.sized || k.Size != 0
	value := uint64(0)
	size := Amount{1, k.Size}
	if n := c.group(r); n >= 0 {
		value = uint64(n) + 1
		g := c.at(n)
		g.Allocated.add(size)
		g.Live.add(size)
		if g.Live.above(g.Peak) {
			g.Peak = g.Live
		}
		c.total.Allocated.add(size)
		c.total.Live.add(size)
		if c.total.Live.above(c.total.Peak) {
			c.total.Peak = c.total.Live
			c.peaks++
		}
	}
	if old, replaced := c.blocks.Insert(r.PID, k.Resource, k.ID, k.Size, value); replaced && old.Value != 0 {
		of := c.lost[r.PID]
		if of == nil {
			of = make(map[uint64]Amount)
			c.lost[r.PID] = of
		}
		a := of[old.Value]
		a.add(Amount{1, old.Size})
		of[old.Value] = a
	}
	c.latest.allocated(r)
}

// at returns a group that is about to change.
func (c *Counter) at(n int) *group {
	for n >= len(c.groups) {
		c.groups = append(c.groups, group{peaks: c.peaks})
	}
	g := &c.groups[n]
	g.settle(c.peaks)
	return g
}

func (g *group) settle(peaks uint64) {
	if g.peaks != peaks {
		g.AtPeak, g.peaks = g.Live, peaks
	}
}

func (c *Counter) free(r *trace.Record, id uint64) {
	temporary := c.latest.freed(r, id)
	e, gone := c.blocks.Free(r.PID, r.Call.Resource, id)
	if !gone || e.Value == 0 {
		return
	}
	size := Amount{1, e.Size}
	c.end(e.Value, size)
	if temporary {
		c.groups[e.Value-1].Temporary.add(size)
		c.total.Temporary.add(size)
	}
}

// end takes what is no longer live off a group, by the value of its blocks.
func (c *Counter) end(value uint64, size Amount) {
	c.at(int(value - 1)).Live.sub(size)
	c.total.Live.sub(size)
}

// exec frees all blocks of a process, as leak.Blocks has it.
func (c *Counter) exec(pid int32) {
	c.latest.clear()
	for ended, entries := range c.blocks.Exec(pid) {
		for e := range entries {
			if e.Value != 0 {
				c.end(e.Value, Amount{1, e.Size})
			}
		}
		for value, size := range c.lost[ended] {
			c.end(value, size)
		}
		delete(c.lost, ended)
	}
}

// Len is one more than the largest number of a group that has blocks.
func (c *Counter) Len() int { return len(c.groups) }

// Of returns what a group took so far.
func (c *Counter) Of(n int) Usage {
	if n >= len(c.groups) {
		return Usage{}
	}
	g := &c.groups[n]
	g.settle(c.peaks)
	return g.Usage
}

// Total is what all groups took so far. Its Peak and AtPeak are the same.
func (c *Counter) Total() Usage {
	u := c.total
	u.AtPeak = u.Peak
	return u
}

// Unmatched is how many frees there were of blocks that were not live.
func (c *Counter) Unmatched() uint64 { return c.blocks.Unmatched() }

// Frees is how many frees there were, also of blocks that were not live.
func (c *Counter) Frees() uint64 { return c.frees }

// Allocations is how many blocks began, also those of no group.
func (c *Counter) Allocations() uint64 { return c.allocs }

// Sized says whether any allocation had a size.
func (c *Counter) Sized() bool { return c.sized }

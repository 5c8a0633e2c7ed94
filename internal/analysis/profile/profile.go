// Package profile sums up all allocations of a trace by size and by place. It
// provides the four tables of mpatrol's mprof, as [Profile.Bins],
// [Profile.Direct], [Profile.Leaks] and [Profile.Graph].
//
// The unfreed blocks are those that package leak finds: a move frees and
// allocates, exec frees all blocks of a process, and an allocation of a live
// block leaves the older one unfreed. Memory grows with the live blocks and the
// distinct call sites.
package profile

import (
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Class is one of four ranges of sizes.
type Class int

// The classes.
const (
	Small Class = iota
	Medium
	Large
	ExtraLarge
	Classes = 4
)

// Bounds holds the largest sizes, in bytes, of the classes Small, Medium and
// Large.
type Bounds [Classes - 1]uint64

// DefaultBounds are the bounds of mprof.
var DefaultBounds = Bounds{32, 256, 2048}

// Class returns the class of a size.
func (b *Bounds) Class(size uint64) Class {
	for c, bound := range b {
		if size <= bound {
			return Class(c)
		}
	}
	return ExtraLarge
}

// Sums holds the numbers and sizes of blocks by class.
type Sums struct {
	Count, Bytes [Classes]uint64
}

func (s *Sums) add(c Class, size uint64) {
	s.Count[c]++
	s.Bytes[c] += size
}

func (s *Sums) remove(c Class, size uint64) {
	s.Count[c]--
	s.Bytes[c] -= size
}

// Add adds t to s.
func (s *Sums) Add(t *Sums) {
	for c := range Classes {
		s.Count[c] += t.Count[c]
		s.Bytes[c] += t.Bytes[c]
	}
}

// Total returns the sums of all classes.
func (s *Sums) Total() (count, bytes uint64) {
	for c := range Classes {
		count += s.Count[c]
		bytes += s.Bytes[c]
	}
	return count, bytes
}

// Usage holds the allocated blocks, and those of them that were not freed.
type Usage struct {
	Allocated, Unfreed Sums
}

// Add adds t to u.
func (u *Usage) Add(t *Usage) {
	u.Allocated.Add(&t.Allocated)
	u.Unfreed.Add(&t.Unfreed)
}

// Options configure a Profile.
type Options struct {
	Bounds Bounds
	Bins   int // sizes below this have a bin each
	// Framer names the frames that have no names in the trace. It is used after
	// all records are read.
	Framer sites.Framer
}

// Profile sums up the records of a trace.
type Profile struct {
	options   Options
	blocks    *live.Blocks // Value is the number of the place
	processes live.Processes[process]
	bins      Bins
	stacks    bool
}

// process holds the sums of one process.
type process struct {
	names  sites.Names
	places sites.Table
	usage  []Usage // by place
	lost   []block // unfreed blocks whose address was allocated again
}

type block struct {
	place, size uint64
}

// New returns an empty Profile.
func New(o Options) *Profile {
	return &Profile{
		options: o, blocks: live.NewBlocks(), processes: live.NewProcesses(func() *process { return &process{} }),
		bins: Bins{Allocated: newSizes(o.Bins), Unfreed: newSizes(o.Bins)},
	}
}

// Add processes a record. Call, Resource and Exec count. It keeps no reference
// to the contents of r.
func (p *Profile) Add(r *trace.Record) {
	c := &r.Call
	switch {
	case r.Kind == trace.KindResource:
		p.blocks.Declare(&r.Resource)
	case r.Kind == trace.KindExec:
		p.exec(r.PID)
	case r.Kind != trace.KindCall:
	case c.Op == trace.OpFree:
		p.free(r.PID, c.Resource, c.ID)
	case c.Op == trace.OpMove && c.OldID != 0:
		p.free(r.PID, c.Resource, c.OldID)
		fallthrough
	case c.Op == trace.OpAlloc || c.Op == trace.OpMove:
		p.alloc(r)
	}
}

func (p *Profile) alloc(r *trace.Record) {
	c := &r.Call
	if p.blocks.Retain(r.PID, c.Resource, c.ID) {
		return
	}
	of := p.processes.Of(r.PID)
	n := of.places.Add(&c.Stack, &c.Caller, &of.names)
	for int(n) >= len(of.usage) {
		of.usage = append(of.usage, Usage{})
	}
	p.stacks = p.stacks || len(c.Stack.Frames) > 0
	class := p.options.Bounds.Class(c.Size)
	of.usage[n].Allocated.add(class, c.Size)
	of.usage[n].Unfreed.add(class, c.Size)
	p.bins.Allocated.add(c.Size)
	p.bins.Unfreed.add(c.Size)
	if old, fate := p.blocks.Insert(r.PID, c.Resource, c.ID, c.Size, uint64(n)); fate != live.Absent {
		of.lost = append(of.lost, block{old.Value, old.Size})
	}
}

func (p *Profile) free(pid int32, resource uint32, id uint64) {
	if e, fate := p.blocks.Free(pid, resource, id); fate != live.Absent {
		p.freed(p.processes.Of(pid), block{e.Value, e.Size})
	}
}

func (p *Profile) freed(of *process, b block) {
	of.usage[b.place].Unfreed.remove(p.options.Bounds.Class(b.size), b.size)
	p.bins.Unfreed.remove(b.size)
}

// exec frees all blocks of a process, as live.Blocks does.
func (p *Profile) exec(pid int32) {
	for ended, entries := range p.blocks.Exec(pid) {
		of := p.processes.Of(ended)
		for e := range entries {
			p.freed(of, block{e.Value, e.Size})
		}
		for _, b := range of.lost {
			p.freed(of, b)
		}
		of.lost = nil
	}
}

// Total returns the sum over the whole trace.
func (p *Profile) Total() Usage {
	var total Usage
	for _, of := range p.processes.All() {
		for i := range of.usage {
			total.Add(&of.usage[i])
		}
	}
	return total
}

// HasStacks reports whether any call had a stack. Without stacks, Graph
// contains only the direct callers of the allocator.
func (p *Profile) HasStacks() bool { return p.stacks }

// Unmatched returns the number of frees of blocks that were not live.
func (p *Profile) Unmatched() uint64 { return p.blocks.Unmatched() }

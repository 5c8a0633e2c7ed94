// Package digest sums up a whole trace in one pass for a report. For each type
// of resource it computes the curve of the live amount, the allocations of each
// stack, function, module, thread and process, sizes and lifetimes. For the
// trace it collects how it was recorded and what is missing from it.
//
// [live.Blocks] defines which blocks are live or unknown; blocks unknown at the
// end count as live in curves and peaks. All processes of the trace are summed
// up together. Every call is an event; events are numbered from 1.
// [live.Temporary] defines which blocks are temporary.
package digest

import (
	"strings"

	"rtrace-bpf/internal/analysis/blocks"
	"rtrace-bpf/internal/analysis/cube"
	"rtrace-bpf/internal/analysis/rss"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Memory is the resource type of memory blocks and of calls of undeclared
// resources.
const Memory = "memory"

// Limits of what is distinguished.
const (
	maxResources = 64      // types of resources; calls of others are only counted
	maxAPIs      = 1 << 10 // traced functions per resource
	maxNames     = 1 << 16 // names of threads and processes
	noMore       = "(other)"
)

// Generated is the function of frames in generated code without names.
const Generated = "(generated code without names)"

// Options of a Digest.
type Options struct {
	// Points is the largest number of points of a curve; 0 means 512.
	Points int
	// Framer names the frames of stacks.
	Framer sites.Framer
	// Observe is called with each mapping and each record that removes
	// mappings, in the order of the trace, so that Framer knows them. It may be
	// nil.
	Observe func(*trace.Record)
	// Module returns the path of the module that contains an address, or an
	// empty string. It may be nil.
	Module func(pid int32, addr uint64) string
	// Generated reports whether the code of a process that is in no file has been generated. Then all
	// of it that has no name is one frame, Generated. It may be nil.
	Generated func(pid int32) bool
}

// Digest processes the records of a trace. Memory is bounded by the blocks that
// are live at a time, the distinct stacks, and the threads and processes.
type Digest struct {
	facts     Facts
	rss       rss.Account
	blocks    *live.Blocks // Value is the number of the life
	lives     live.Values[life]
	temporary live.Temporary
	sampled   live.IDs
	rows      []row
	processes live.Processes[process]
	resources resources
	frames    frames
	clock     timeline.Clock
	cells     cells
	recording recording
	event     uint64
	contexts  contexts
	names     names
	work      int // frames that may still be examined because of mappings
}

// New returns an empty Digest.
func New(o Options) *Digest {
	if o.Points <= 0 {
		o.Points = 512
	}
	return &Digest{
		blocks: live.NewBlocks(), processes: live.NewProcesses(func() *process { return &process{} }),
		resources: resources{byID: make(map[uint32]*resource), points: o.Points},
		frames:    frames{framer: o.Framer, module: o.Module, observer: o.Observe, generated: o.Generated},
		contexts:  contexts{byEvent: masks{limit: o.Points}, byTime: masks{limit: o.Points}},
		names:     names{threads: make(map[blocks.ThreadKey]string), programs: make(map[int32]string)}, work: maxWork,
	}
}

// Add processes a record. It keeps no reference to the contents of r. If the
// file has several traces, a record without a process gets a number that stands
// for its trace.
func (d *Digest) Add(r *trace.Record) {
	if r.Kind == trace.KindHeader {
		d.header(&r.Header)
	}
	if r.PID == 0 && d.facts.Traces > 1 {
		r.PID = 1 - int32(min(d.facts.Traces, 1<<30))
	}
	if r.Kind != trace.KindCall {
		d.rss.Add(r)
		d.recording.add(r, &d.clock)
	}
	switch r.Kind {
	case trace.KindCall:
		d.call(r)
	case trace.KindResource:
		d.declare(&r.Resource)
	case trace.KindContext:
		d.context(r)
	case trace.KindExec:
		d.exec(r)
	case trace.KindLost:
		d.blocks.Lost(r, nil)
		d.facts.add(r)
	case trace.KindMapping, trace.KindUnmapping, trace.KindModule, trace.KindFunction:
		d.mapping(r)
	case trace.KindThread:
		d.names.addThread(r)
	case trace.KindProcess:
		d.processes.Of(r.PID)
		d.names.addProgram(r)
		d.facts.process(r)
	default:
		d.facts.add(r)
	}
}

func (d *Digest) header(h *trace.Header) {
	if d.facts.Traces++; d.facts.Traces == 1 {
		own := *h
		for _, s := range []*string{&own.Format, &own.Version, &own.Arch, &own.Filter, &own.Origin} {
			*s = strings.Clone(*s)
		}
		d.facts.Header, d.facts.Depth = own, -1
	}
	d.clock.Day = h.Clock == trace.ClockDay
	d.facts.Coarse = d.clock.Day
}

// context processes the declaration of a context.
func (d *Digest) context(r *trace.Record) {
	now := d.clock.Last()
	if r.Time != 0 && d.clock.Begun() {
		now = d.clock.Elapsed(r.Time)
	}
	d.contexts.declare(&r.Context, d.event, now)
}

// declare processes the declaration of a resource.
func (d *Digest) declare(r *trace.Resource) {
	d.blocks.Declare(r)
	d.sampled.Set(r.ID, r.Sampled)
	d.resources.declare(r)
}

func (d *Digest) call(r *trace.Record) {
	c := &r.Call
	d.event++
	if r.Time != 0 && !d.clock.Begun() {
		d.recording.first(r.Time, &d.clock)
	}
	now := d.clock.Elapsed(r.Time)
	position := d.cells.at(d.event, now, r.Time != 0)
	d.facts.call(r)
	if c.Context != 0 {
		d.contexts.add(c.Context, d.event, now)
	}
	of := d.resources.of(c.Resource)
	if of == nil {
		d.facts.Unfollowed++
		return
	}
	of.Calls.Add(c)
	of.apis.add(c)
	e := moment{d.event, now, of.byEvent.At(d.event - 1), of.byTime.At(uint64(now))}
	thread := of.threads.number(r)
	life := life{event: d.event, time: now, made: now, born: position}
	switch c.Op {
	case trace.OpFree:
		d.free(of, r, c.ID, thread, &e)
	case trace.OpMove:
		if c.OldID != 0 {
			if old, ok := d.free(of, r, c.OldID, thread, &e); ok {
				life.event, life.time = old.event, old.time // realloc does not restart it
			}
		}
		d.alloc(of, r, thread, life, &e)
	case trace.OpAlloc:
		d.alloc(of, r, thread, life, &e)
	}
	of.level(&e)
}

// free processes a free and returns the life of the block that it ended, if
// any.
func (d *Digest) free(of *resource, r *trace.Record, id uint64, thread uint32, at *moment) (life, bool) {
	before := d.blocks.Unmatched()
	b, fate := d.blocks.Free(r.PID, r.Call.Resource, id)
	of.Unmatched += d.blocks.Unmatched() - before
	if fate == live.Absent {
		return life{}, false
	}
	l := d.lives.Take(b.Value)
	temporary := d.temporary.Freed(r, uint32(of.number), l.nth)
	of.freed(d.cellOf(of, l.cell), l, b.Size, temporary, fate, at)
	d.cells.Ended(l.cell, live.Amount{Blocks: 1, Bytes: b.Size})
	if temporary && fate == live.Known {
		d.cells.Temporary(l.cell, l.born, b.Size)
	}
	return l, fate == live.Known
}

func (d *Digest) alloc(of *resource, r *trace.Record, thread uint32, l life, at *moment) {
	c := &r.Call
	if d.blocks.Retain(r.PID, c.Resource, c.ID) {
		return
	}
	p := d.processes.Of(r.PID)
	row := d.row(p, of, r)
	l.cell = d.cells.number(cell{row, thread, cube.Class(c.Size)})
	d.facts.size(c.Size)
	if d.sampled.Has(c.Resource) {
		of.allocated(d.cellOf(of, l.cell), c.Size, at)
		d.cells.Made(l.cell, c.Size)
		of.stack(&c.Stack, &c.Caller)
		p.keep(l, c.Size)
		d.rows[row].born(l)
		return
	}
	l.nth = d.temporary.Allocated(r, uint32(of.number))
	old, fate := d.blocks.Insert(r.PID, c.Resource, c.ID, c.Size, d.lives.Add(l))
	if fate != live.Absent {
		before := d.lives.Take(old.Value)
		d.ended(before.cell, live.Amount{Blocks: 1, Bytes: old.Size}, sizeBin(old.Size), at.event)
	}
	if fate == live.Known {
		of.Replaced++
	}
	of.allocated(d.cellOf(of, l.cell), c.Size, at)
	d.cells.Made(l.cell, c.Size)
	of.stack(&c.Stack, &c.Caller)
}

// cellOf returns the row and the thread of a cell.
func (d *Digest) cellOf(of *resource, n uint32) [2]*use {
	c := &d.cells.all[n]
	return [2]*use{&d.rows[c.row].use, &of.threads.uses[c.thread]}
}

// ended subtracts blocks of a cell that ended without a free.
func (d *Digest) ended(n uint32, a live.Amount, bin uint8, event uint64) {
	of := d.resources.types[d.rows[d.cells.all[n].row].resource]
	of.ended(d.cellOf(of, n), a, bin, event)
	d.cells.Ended(n, a)
}

// exec ends all blocks of a process.
func (d *Digest) exec(r *trace.Record) {
	d.facts.Execs++
	if r.PID == 0 || r.PID == d.facts.PID {
		d.facts.Became = strings.Clone(r.Exec.Name)
	}
	for _, blocks := range d.blocks.Exec(r.PID) {
		for e := range blocks {
			l := d.lives.Take(e.Value)
			d.ended(l.cell, live.Amount{Blocks: 1, Bytes: e.Size}, sizeBin(e.Size), d.event+1)
		}
	}
	for pid, p := range d.processes.All() {
		if r.PID != 0 && pid != r.PID {
			continue
		}
		for k, a := range p.sampled {
			d.ended(k.cell, a, k.bin, d.event+1)
		}
		p.sampled = nil
	}
	d.settleAll(r.PID, 0, ^uint64(0))
	d.frames.observe(r)
}

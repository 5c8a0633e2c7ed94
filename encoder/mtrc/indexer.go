package mtrc

import (
	"math"

	"rtrace-bpf/internal/live"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// Indexer turns records into events that follow the rules for a file: an index is live
// from its A to its F and belongs to one block, R and F occur only for live indices,
// and no two live blocks of a process have the same address. It uses memory for the
// blocks that are live at a time.
//
// A block keeps the index that its Call has. Other blocks are numbered from 1, or from
// one above the highest index seen. Records of several processes may be mixed: their
// blocks are kept apart but numbered together.
type Indexer struct {
	limit   uint64      // all indices are below it
	last    uint64      // highest index so far
	floor   uint64      // indices up to it may belong to blocks that were voided
	again   uint64      // last index that was reused
	blocks  *live.Table // by process and address: size, and the index as value
	byIndex *live.Table // by index; nil while the Indexer has chosen all indices
	other   map[uint32]bool
	stats   IndexStats
	forget  func(index uint64) // called for blocks that end without an event; may be nil
	out     [2]wire.Event
}

// IndexStats counts what an Indexer did with records.
type IndexStats struct {
	Unmatched uint64 // frees of blocks that are not live: dropped
	Adopted   uint64 // moves of blocks that are not live: written as allocations
	// Replaced counts allocations at the address of a live block. The free of that
	// block was lost and is written first.
	Replaced   uint64
	Renumbered uint64 // blocks whose index was live already: they got another one
	Unchanged  uint64 // moves that changed nothing: dropped, as mpatrol does
	Foreign    uint64 // calls of other resources than memory, or of no known kind: dropped
}

// NewIndexer returns an Indexer for a new stream.
func NewIndexer() *Indexer { return newIndexer(math.MaxUint64) }

func newIndexer(limit uint64) *Indexer {
	return &Indexer{limit: limit, blocks: live.New()}
}

// Stats returns the counters so far.
func (x *Indexer) Stats() IndexStats { return x.stats }

// Reset starts a new stream: no block is live, and numbers start at 1.
func (x *Indexer) Reset() {
	x.blocks.Clear()
	x.last, x.floor, x.again, x.byIndex, x.other = 0, 0, 0, nil, nil
}

// Events returns the events that r becomes, at most two. They are valid until the next
// call.
func (x *Indexer) Events(r *trace.Record) []wire.Event {
	switch r.Kind {
	case trace.KindCall:
		return x.call(r)
	case trace.KindHeapGrow:
		e := &x.out[0]
		*e = wire.Event{Kind: wire.Heap, Address: r.HeapGrow.Address, Size: r.HeapGrow.Size}
		if r.HeapGrow.Internal {
			e.Kind = wire.Internal
		}
		return x.out[:1]
	case trace.KindResource:
		x.resource(&r.Resource)
	case trace.KindExec:
		x.void(r.PID)
	case trace.KindExit:
		if r.Exit.Process {
			x.void(r.PID)
		}
	}
	return nil
}

// resource remembers which resources are not memory.
func (x *Indexer) resource(r *trace.Resource) {
	if r.Type != wire.Resource {
		if x.other == nil {
			x.other = make(map[uint32]bool)
		}
		x.other[r.ID] = true
	} else if x.other != nil {
		delete(x.other, r.ID)
	}
}

// void forgets the blocks of a process whose memory is gone. The format has no event
// for that.
func (x *Indexer) void(pid int32) {
	var gone []live.Entry
	for b := range x.blocks.All() {
		if b.Resource == uint32(pid) {
			gone = append(gone, b)
		}
	}
	if len(gone) > 0 {
		x.floor = x.last
	}
	for _, b := range gone {
		x.end(pid, b.ID, 0)
		if x.forget != nil {
			x.forget(b.Value)
		}
	}
}

func (x *Indexer) call(r *trace.Record) []wire.Event {
	c := &r.Call
	if x.other != nil && x.other[c.Resource] {
		x.stats.Foreign++
		return nil
	}
	if c.Index != 0 && x.byIndex == nil {
		x.given()
	}
	switch c.Op {
	case trace.OpAlloc:
		return x.alloc(r, wire.Alloc, 0)
	case trace.OpFree:
		b, ok := x.end(r.PID, c.ID, c.Index)
		if !ok {
			x.stats.Unmatched++
			return nil
		}
		e := &x.out[0]
		e.Kind, e.Index, e.Address, e.Size = wire.Free, b.Value, 0, 0
		setSource(e, r)
		return x.out[:1]
	case trace.OpMove:
		b, ok := x.end(r.PID, c.OldID, c.Index)
		if !ok {
			x.stats.Adopted++
			return x.alloc(r, wire.Alloc, 0)
		}
		if c.ID == b.ID && c.Size == b.Size {
			x.stats.Unchanged++
			x.begin(r.PID, b.ID, b.Size, b.Value)
			return nil
		}
		return x.alloc(r, wire.Realloc, b.Value)
	}
	x.stats.Foreign++
	return nil
}

// alloc makes the block of r live and returns its event, after the free of a block that
// was at its address. index is the index of a block that moved, or 0.
func (x *Indexer) alloc(r *trace.Record, kind wire.Kind, index uint64) []wire.Event {
	c := &r.Call
	n := 0
	if b, ok := x.end(r.PID, c.ID, 0); ok {
		x.stats.Replaced++
		x.out[0] = wire.Event{Kind: wire.Free, Index: b.Value} // where it was freed is unknown
		n = 1
	}
	if kind == wire.Alloc {
		index = x.number(c.Index)
	}
	size := sizeOf(c)
	x.begin(r.PID, c.ID, size, index)
	e := &x.out[n]
	e.Kind, e.Index, e.Address, e.Size = kind, index, c.ID, size
	setSource(e, r)
	return x.out[:n+1]
}

// pvallocPage is the size that pvalloc rounds up to. Traces do not record the page size
// of their machine.
const pvallocPage = 4096

// sizeOf returns the size of a block as the library writes it: the requested size, at
// least one byte, and whole pages for pvalloc.
func sizeOf(c *trace.Call) uint64 {
	if c.Function != "pvalloc" || c.Op != trace.OpAlloc || c.Size > math.MaxUint64-pvallocPage {
		return c.Size
	}
	return (max(c.Size, 1) + pvallocPage - 1) &^ (pvallocPage - 1)
}

func setSource(e *wire.Event, r *trace.Record) {
	c, s := &r.Call, &e.Source
	if s.Thread = c.Thread; s.Thread == 0 && r.TID > 0 {
		s.Thread = uint64(r.TID)
	}
	s.Function.Text, s.Function.Known = c.Caller.Function, c.Caller.Function != ""
	s.File.Text, s.File.Known = c.Caller.File, c.Caller.File != ""
	s.Line = c.Caller.Line
}

// begin makes a block live. No other block has its address.
func (x *Indexer) begin(pid int32, id, size, index uint64) {
	x.blocks.Insert(uint32(pid), id, size, index)
	if x.byIndex != nil {
		x.byIndex.Insert(0, index, 0, 0)
	}
}

// end ends the live block at an address and reports whether there was one. If the call
// has another index than the block, it refers to this block only if that index is in
// use elsewhere, because then the block got a new one. Otherwise it refers to a block
// that was replaced.
func (x *Indexer) end(pid int32, id, index uint64) (live.Entry, bool) {
	b, ok := x.blocks.Remove(uint32(pid), id)
	if !ok || x.byIndex == nil {
		return b, ok
	}
	if index != 0 && index != b.Value && index < x.limit && !x.used(index) {
		x.blocks.Insert(uint32(pid), b.ID, b.Size, b.Value)
		return b, false
	}
	x.byIndex.Remove(0, b.Value)
	return b, true
}

// number returns the index for a new block that came with the given index, or with 0.
func (x *Indexer) number(index uint64) uint64 {
	if index != 0 {
		if index < x.limit && (index > x.last || index > x.floor && !x.used(index)) {
			x.last = max(x.last, index)
			return index
		}
		x.stats.Renumbered++
	}
	if x.last+1 < x.limit {
		x.last++
		return x.last
	}
	// All numbers were used: reuse the free ones. There are more than memory has room
	// for live blocks.
	if x.byIndex == nil {
		x.given()
	}
	for {
		if x.again++; x.again >= x.limit {
			x.again = 1
		}
		if !x.used(x.again) {
			return x.again
		}
	}
}

func (x *Indexer) used(index uint64) bool {
	_, used := x.byIndex.Get(0, index)
	return used
}

// given prepares for indices that the Indexer did not choose: it must know which are in
// use.
func (x *Indexer) given() {
	x.byIndex = live.New()
	for b := range x.blocks.All() {
		x.byIndex.Insert(0, b.Value, 0, 0)
	}
}

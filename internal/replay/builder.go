package replay

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Order defines the order of the calls of different threads in a replay.
type Order uint8

// The orders.
const (
	OrderDependencies Order = iota // only as required by the history of each block
	OrderTrace                     // that of the trace; the measured time is then that of taking turns
)

// Limits of a trace.
const (
	maxThreads = 4096       // with calls, at the same time
	maxSlots   = numberMask // live blocks
	// addressSpace is larger than any successful allocation.
	addressSpace = 1 << 48
)

// ErrNoCalls reports that a trace has nothing to replay.
var ErrNoCalls = errors.New("no calls of malloc or related functions")

// Stats holds figures of a program and of the calls of the trace that it leaves
// out.
type Stats struct {
	Calls       uint64 `json:"calls"`          // replayed, including AddedFrees
	Threads     int    `json:"traced_threads"` // with such calls
	Lanes       int    `json:"threads"`        // threads of the replay
	Slots       int    `json:"slots"`
	PeakBlocks  uint64 `json:"peak_blocks"` // live at once, in the trace's order
	PeakBytes   uint64 `json:"peak_bytes"`  // live at once, as requested by the program
	LeftBlocks  uint64 `json:"left_blocks"` // live at the end
	LeftBytes   uint64 `json:"left_bytes"`
	Unmatched   uint64 `json:"unmatched_frees"` // frees of blocks whose allocation is not in the trace; left out
	Adopted     uint64 `json:"adopted_moves"`   // moves of such blocks; replayed as allocations
	Processes   uint64 `json:"other_processes"` // calls of all processes but the first; left out
	AddedFrees  uint64 `json:"added_frees"`     // for blocks that ended without a free: address allocated again, exec
	Other       uint64 `json:"other_calls"`     // of other resources, or without a block; left out
	LostEvents  uint64 `json:"lost_events"`     // that the trace lacks, as it records itself
	Waits       uint64 `json:"waits"`           // for another thread
	ProgramSize uint64 `json:"program_bytes"`   // memory of the replay in addition to the blocks
}

// Builder is a trace.Writer that builds a Program. It takes 8 bytes for each
// call and about 80 for each block that is live at a time.
type Builder struct {
	order    Order
	stats    Stats
	threads  []*thread
	byID     map[uint64]uint32 // threads that have not ended
	blocks   *live.Table       // the value is the slot
	slots    slots
	skipped  map[uint32]bool // resources that are not memory
	process  process
	calls    uint64 // assigned to a thread
	recent   bool   // whether lastID and last are set
	lastID   uint64 // of the thread of the last call
	last     uint32
	lastWord struct{ thread, at uint32 } // of the last call
	err      error
}

// NewBuilder returns a Builder for calls in the given order.
func NewBuilder(order Order) *Builder {
	return &Builder{
		order: order, byID: make(map[uint64]uint32), blocks: live.New(), skipped: make(map[uint32]bool),
	}
}

// Flush implements trace.Writer.
func (b *Builder) Flush() error { return b.err }

// Close implements trace.Writer.
func (b *Builder) Close() error { return b.err }

// WriteRecord implements trace.Writer. It fails if the trace exceeds a limit of
// programs.
func (b *Builder) WriteRecord(r *trace.Record) error {
	switch r.Kind {
	case trace.KindCall:
		if b.process.has(r) {
			b.call(r)
		} else {
			b.stats.Processes++
		}
	case trace.KindProcess:
		b.process.begin(r)
	case trace.KindResource:
		b.skipped[r.Resource.ID] = r.Resource.Type != "memory"
	case trace.KindExit:
		b.exit(r)
	case trace.KindExec:
		if b.process.has(r) {
			b.exec(r)
		}
	case trace.KindLost:
		b.stats.LostEvents += r.Lost.Events()
	}
	return b.err
}

func (b *Builder) call(r *trace.Record) {
	c := &r.Call
	switch {
	case b.skipped[c.Resource] || c.ID == 0 || c.Size >= addressSpace:
		b.stats.Other++
	case c.Op == trace.OpFree:
		if e, ok := b.blocks.Remove(0, c.ID); ok {
			b.end(b.thread(r), uint32(e.Value))
		} else {
			b.stats.Unmatched++
		}
	case c.Op == trace.OpAlloc:
		b.alloc(b.thread(r), c, codeOfFunction(c.Function))
	case c.Op == trace.OpMove:
		b.move(b.thread(r), c)
	default:
		b.stats.Other++
	}
}

// move adds a realloc. The block stays in its slot.
func (b *Builder) move(t uint32, c *trace.Call) {
	old, ok := b.blocks.Remove(0, c.OldID)
	if !ok {
		if c.OldID != 0 {
			b.stats.Adopted++
		}
		b.alloc(t, c, codeRealloc)
		return
	}
	b.replace(t, c.ID)
	n := uint32(old.Value)
	b.wait(t, b.slots.slots[n].thread, b.slots.slots[n].at)
	b.place(t, n, c, codeRealloc)
}

func (b *Builder) alloc(t uint32, c *trace.Call, how code) {
	b.replace(t, c.ID)
	b.place(t, b.take(t), c, how)
}

// replace frees the block at an address that is about to be allocated. The
// trace lacks its free.
func (b *Builder) replace(t uint32, id uint64) {
	if e, ok := b.blocks.Remove(0, id); ok {
		b.stats.AddedFrees++
		b.end(t, uint32(e.Value))
	}
}

// place adds the call that allocates a block into a slot.
func (b *Builder) place(t, n uint32, c *trace.Call, how code) {
	b.blocks.Insert(0, c.ID, c.Size, uint64(n))
	b.stats.PeakBytes = max(b.stats.PeakBytes, b.blocks.Bytes())
	b.stats.PeakBlocks = max(b.stats.PeakBlocks, uint64(b.blocks.Len()))
	b.emit(t, n, how, c.Size)
	if how >= codeMemalign {
		b.threads[t].words.add(alignment(c))
	}
}

// end adds the free of a slot's block.
func (b *Builder) end(t, n uint32) {
	s := &b.slots.slots[n]
	b.wait(t, s.thread, s.at)
	b.emit(t, n, codeFree, 0)
	b.slots.push(&b.threads[t].free, own, n)
	b.slots.push(&b.slots.free, all, n)
}

// take returns a slot for a new block: the one that the thread freed last,
// otherwise a new one, otherwise the one that has been free for the longest
// time.
func (b *Builder) take(t uint32) uint32 {
	mine := &b.threads[t].free
	if mine.newest != 0 {
		n := mine.newest - 1
		b.slots.remove(mine, own, n)
		b.slots.remove(&b.slots.free, all, n)
		return n
	}
	slack := uint64(slackPerThread * min(len(b.threads), slackThreads))
	most := max(b.stats.PeakBlocks, uint64(b.blocks.Len())+1) + slack
	if b.slots.free.oldest == 0 || uint64(len(b.slots.slots)) < most {
		if len(b.slots.slots) == maxSlots {
			b.err = fmt.Errorf("more than %d blocks are live at once", maxSlots)
			return 0
		}
		return b.slots.add()
	}
	n := b.slots.free.oldest - 1
	s := &b.slots.slots[n]
	b.slots.remove(&b.threads[s.thread].free, own, n)
	b.slots.remove(&b.slots.free, all, n)
	b.wait(t, s.thread, s.at)
	return n
}

// emit adds a call to a thread's words.
func (b *Builder) emit(t, n uint32, how code, size uint64) {
	if b.order == OrderTrace && b.stats.Calls > 0 {
		b.wait(t, b.lastWord.thread, b.lastWord.at)
	}
	b.stats.Calls++
	w := &b.threads[t].words
	if w.n >= math.MaxUint32-8 {
		b.err = errors.New("a thread has more than 2^32 calls")
		return
	}
	s := &b.slots.slots[n]
	s.thread, s.at = t, uint32(w.n)
	b.lastWord.thread, b.lastWord.at = s.thread, s.at
	if size < wide {
		w.add(word(how, n, size))
		return
	}
	w.add(word(how, n, wide))
	w.add(size)
}

// wait makes thread t wait until another one has done the word at the given
// index, unless t knows already that it has.
func (b *Builder) wait(t, other, at uint32) {
	if t == other || b.err != nil {
		return
	}
	th := b.threads[t]
	if th.seen[other] > at {
		return
	}
	if th.seen == nil {
		th.seen = make(map[uint32]uint32)
	}
	th.seen[other] = at + 1
	b.threads[other].words.mark(at)
	th.words.add(word(codeWait, other, uint64(at)+1))
	b.stats.Waits++
}

// exec frees all blocks, because the kernel released their memory.
func (b *Builder) exec(r *trace.Record) {
	if b.blocks.Len() == 0 {
		return
	}
	left := make([]uint32, 0, b.blocks.Len())
	for e := range b.blocks.All() {
		left = append(left, uint32(e.Value))
	}
	slices.Sort(left)
	b.blocks.Clear()
	t := b.thread(r)
	for _, n := range left {
		b.stats.AddedFrees++
		b.end(t, n)
	}
}

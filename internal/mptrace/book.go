package mptrace

import wire "rtrace-bpf/internal/wire/mtrc"

// Problem is an error in an event.
type Problem uint8

// The problems of events.
const (
	// None: no problem.
	None Problem = iota
	// Unknown: R or F of an index without a block.
	Unknown
	// Freed: R or F of a block that was freed. A Book cannot distinguish it
	// from Unknown, because it does not remember freed blocks.
	Freed
	// Twice: A of an index whose block is live.
	Twice
)

// Entry is the result of counting one event.
type Entry struct {
	Kind    wire.Kind
	Problem Problem
	// Done reports that the event counts. Otherwise only Number, Kind and
	// Problem are set.
	Done   bool
	Number uint64 // of the event, from 1; 0 for H and I
	Index  uint64
	// Address and Size are those of the block after A and R, and before F; for
	// H and I they are those of the memory.
	Address, Size uint64
	// OldAddress and OldSize are those of the block before R, and before an A
	// with the problem Twice.
	OldAddress, OldSize uint64
	Life                uint64 // F: events since the A
	Live                Sum    // after the event
}

// Book keeps exact statistics of one stream. Its memory is in proportion to the
// live blocks.
//
// R and F of an index without a block do not count. For A of an index whose
// block is live, the F of that block is missing and is counted as if it were
// there. Before 1.4.4, realloc was written as F followed by A with the same
// index; the block's life then continues.
type Book struct {
	totals Totals
	blocks *blocks
	gone   block // block that the previous event freed
}

// NewBook returns a Book for a new stream.
func NewBook() *Book { return &Book{blocks: newBlocks()} }

// Totals returns the statistics so far. They change with the next Add.
func (b *Book) Totals() *Totals { return &b.totals }

// Add counts an event and stores the result in n.
func (b *Book) Add(e *wire.Event, n *Entry) {
	t := &b.totals
	n.Kind, n.Index, n.Problem, n.Done = e.Kind, e.Index, None, true
	switch e.Kind {
	case wire.Heap, wire.Internal:
		n.Number, n.Address, n.Size = 0, e.Address, e.Size
		if e.Kind == wire.Heap {
			t.Reserved.Add(e.Size)
		} else {
			t.Internal.Add(e.Size)
		}
		return
	case wire.Alloc:
		b.allocate(e, n)
	case wire.Realloc:
		b.reallocate(e, n)
	case wire.Free:
		b.free(e, n)
	}
	n.Live = t.Live
}

func (b *Book) allocate(e *wire.Event, n *Entry) {
	t := &b.totals
	t.Events++
	n.Number, n.Address, n.Size = t.Events, e.Address, e.Size
	born := t.Events
	if b.gone.born != 0 && b.gone.index == e.Index {
		born = b.gone.born
	}
	b.gone.born = 0
	old := b.blocks.put(block{index: e.Index, address: e.Address, size: e.Size, born: born})
	if old.born != 0 {
		n.Problem, n.OldAddress, n.OldSize = Twice, old.address, old.size
		t.free(old.size)
	}
	t.allocate(e.Size)
	t.peak()
}

func (b *Book) reallocate(e *wire.Event, n *Entry) {
	t := &b.totals
	t.Events++
	n.Number, n.Address, n.Size = t.Events, e.Address, e.Size
	b.gone.born = 0
	old := b.blocks.move(e.Index, e.Address, e.Size)
	if old.born == 0 {
		n.Problem, n.Done = Unknown, false
		return
	}
	n.OldAddress, n.OldSize = old.address, old.size
	t.free(old.size)
	t.allocate(e.Size)
	t.peak()
}

func (b *Book) free(e *wire.Event, n *Entry) {
	t := &b.totals
	t.Events++
	n.Number = t.Events
	b.gone = b.blocks.take(e.Index)
	if b.gone.born == 0 {
		n.Problem, n.Done = Unknown, false
		return
	}
	n.Address, n.Size = b.gone.address, b.gone.size
	n.Life = t.Events - b.gone.born
	t.free(b.gone.size)
}

package mptrace

import wire "rtrace-bpf/internal/wire/mtrc"

// Problem is what is wrong with an event.
type Problem uint8

// The problems of events.
const (
	// None: nothing is wrong.
	None Problem = iota
	// Unknown: R or F of an index that no block has.
	Unknown
	// Freed: R or F of a block that was freed. A Book cannot tell it from
	// Unknown, as it forgets blocks when they are freed.
	Freed
	// Twice: A of an index whose block is live.
	Twice
)

// Entry is what the accounts say about one event.
type Entry struct {
	Kind    wire.Kind
	Problem Problem
	// Done says that the event counts. Otherwise Number, Kind and Problem
	// are all that is set.
	Done   bool
	Number uint64 // of the event, from 1; 0 for H and I
	Index  uint64
	// Address and Size are those of the block after A and R, and before F; of H
	// and I they are the memory's.
	Address, Size uint64
	// OldAddress and OldSize are those before R, and before an A with the
	// problem Twice.
	OldAddress, OldSize uint64
	Life                uint64 // F: events since the A
	Live                Sum    // after the event
}

// Book keeps the accounts of one stream, exactly and in memory for the live
// blocks only.
//
// R and F of an index that no block has do not count. With A of an index whose
// block is live, the block's F is missing: it counts as made. F followed by A
// with the same index is how realloc was written before 1.4.4; the block's life
// goes on then.
type Book struct {
	totals Totals
	blocks *blocks
	gone   block // what the event before freed
}

// NewBook returns the accounts of a stream that begins.
func NewBook() *Book { return &Book{blocks: newBlocks()} }

// Totals returns the statistics so far. They change with the next Add.
func (b *Book) Totals() *Totals { return &b.totals }

// Add enters an event and sets n to what there is to say about it.
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

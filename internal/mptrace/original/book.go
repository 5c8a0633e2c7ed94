package original

import (
	"math"
	"strconv"

	"rtrace-bpf/internal/mptrace"
	wire "rtrace-bpf/internal/wire/mtrc"
)

// Book keeps the statistics of a stream as the original tool does. It remembers
// all blocks that ever existed, in 32 bytes each if their indices grow.
type Book struct {
	build  Build
	totals mptrace.Totals
	blocks history
}

// NewBook returns a Book for a new stream.
func NewBook(b Build) *Book { return &Book{build: b} }

// Totals returns the statistics so far. They change with the next Add.
func (b *Book) Totals() *mptrace.Totals { return &b.totals }

// Average returns the average size as the tool computes it, in floating point.
func (b *Book) Average() uint64 {
	t := &b.totals
	if t.Allocated.Count == 0 {
		return 0
	}
	return uint64(math.RoundToEven(float64(t.Allocated.Bytes) / float64(t.Allocated.Count)))
}

// Complaint returns the tool's message about an event, or "".
func Complaint(n *mptrace.Entry) string {
	switch n.Problem {
	case mptrace.Unknown:
		return "Unknown allocation index `" + strconv.FormatUint(n.Index, 10) + "'"
	case mptrace.Freed:
		return "Allocation index `" + strconv.FormatUint(n.Index, 10) + "' has already been freed"
	case mptrace.Twice:
		return "Allocation index `" + strconv.FormatUint(n.Index, 10) + "' has been allocated twice without being freed"
	}
	return ""
}

// Add counts an event and stores the result in n.
func (b *Book) Add(e *wire.Event, n *mptrace.Entry) {
	t := &b.totals
	*n = mptrace.Entry{Kind: e.Kind, Done: true, Index: e.Index, Address: e.Address, Size: e.Size}
	switch e.Kind {
	case wire.Heap:
		b.add(&t.Reserved, e.Size)
		return
	case wire.Internal:
		b.add(&t.Internal, e.Size)
		return
	}
	t.Events = b.build.mask(t.Events + 1)
	n.Number = t.Events
	p := b.blocks.find(e.Index)
	if p == nil && e.Kind != wire.Alloc {
		n.Problem, n.Done = mptrace.Unknown, false
		return
	}
	switch e.Kind {
	case wire.Alloc:
		b.allocate(e, n, p)
	case wire.Realloc:
		b.reallocate(e, n, p)
	case wire.Free:
		b.free(n, p)
	}
	n.Live = t.Live
}

// allocate keeps the birth of a block whose index existed before.
func (b *Book) allocate(e *wire.Event, n *mptrace.Entry, p *block) {
	if p == nil {
		p = b.blocks.add(e.Index)
		p.born = n.Number
	} else if !p.freed() {
		n.Problem, n.OldAddress, n.OldSize = mptrace.Twice, p.address, p.size
	}
	p.address, p.size = e.Address, e.Size
	p.born &^= freedFlag
	b.add(&b.totals.Live, e.Size)
	b.count(e.Size)
}

func (b *Book) reallocate(e *wire.Event, n *mptrace.Entry, p *block) {
	if p.freed() {
		n.Problem = mptrace.Freed
	}
	n.OldAddress, n.OldSize = p.address, p.size
	b.add(&b.totals.Freed, p.size)
	b.totals.Live.Bytes = b.build.mask(b.totals.Live.Bytes - p.size + e.Size)
	p.address, p.size = e.Address, e.Size
	b.count(e.Size)
}

func (b *Book) free(n *mptrace.Entry, p *block) {
	if p.freed() {
		n.Problem = mptrace.Freed
	}
	n.Address, n.Size = p.address, p.size
	n.Life = b.build.mask(n.Number - p.born&^freedFlag)
	p.born |= freedFlag
	b.add(&b.totals.Freed, p.size)
	t := &b.totals.Live
	t.Count, t.Bytes = b.build.mask(t.Count-1), b.build.mask(t.Bytes-p.size)
}

// count counts the size that an A or R gives to a block.
func (b *Book) count(size uint64) {
	t := &b.totals
	b.add(&t.Allocated, size)
	t.Peak.Count = max(t.Peak.Count, t.Live.Count)
	t.Peak.Bytes = max(t.Peak.Bytes, t.Live.Bytes)
	t.Largest = max(t.Largest, size)
	if t.Smallest == 0 || size < t.Smallest {
		t.Smallest = size // after a size of 0 any other size counts as the smallest
	}
}

func (b *Book) add(s *mptrace.Sum, size uint64) {
	s.Count, s.Bytes = b.build.mask(s.Count+1), b.build.mask(s.Bytes+size)
}

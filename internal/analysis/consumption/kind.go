package consumption

import (
	"slices"

	"rtrace-bpf/internal/live"
)

// Kind holds the figures of one type of resource.
type Kind struct {
	Type string
	// Allocated and Freed are the sums of all blocks; replaced blocks count as
	// freed. Live is the amount at the end.
	Allocated, Freed, Live live.Amount
	// Peak is the moment at which most bytes were live.
	Peak Peak
	// Rates holds the peaks of activity.
	Rates Rates
	// Sum, Overhead and Allocs are the curves of the report of totals: live
	// bytes, live bytes with the allocator's overhead for each block (memory
	// only), and the number of blocks allocated so far.
	Sum, Overhead, Allocs *Curve
	// Parts are the parts of the contexts, in the order of their IDs; empty if
	// the trace has no contexts.
	Parts []*Part
	// Lives holds the lifetimes of blocks.
	Lives *Lives
	// Smallest and Largest are the extreme sizes of allocations.
	Smallest, Largest Extreme

	number    uint32
	counted   bool // refcount
	used      bool
	overhead  uint64
	sizes     map[uint64]*SizeCount
	lastAlloc int64
	live      uint64 // Live.Bytes with the overhead
	parts     []*Part
	all       *Part
	none      *Part
	series    struct{ overhead, allocs int }
}

// Everything returns the parts, followed by that of all calls.
func (k *Kind) Everything() []*Part { return append(slices.Clone(k.Parts), k.all) }

// Peak is the state when the most bytes were live, for the first time.
type Peak struct {
	Allocated, Live live.Amount
	At              int64 // on the axis of the reports
	Place           int64 // on the axis of the curves
}

// Extreme is a size, the number of blocks of that size, and the time of the
// first one.
type Extreme struct {
	Size, Count uint64
	At          int64
}

// Part holds the figures of the calls in a context for a type of resource.
type Part struct {
	Context Context
	// Live is the curve of live bytes; the part of all calls has Kind.Sum.
	Live *Curve
	// Rate, Allocs and Frees are the curves of the activity report: bytes and
	// blocks allocated, and blocks freed, in the slice that ends at each
	// position.
	Rate, Allocs, Frees *Curve

	series struct{ live, rate, allocs, frees int }
	bytes  uint64
	steps  []step
	legacy *legacyPart
	timed  bool // whether it has series of activity
	summed bool // whether it has series of totals
}

// begin counts a block that began.
func (k *Kind) begin(e *event) {
	if !k.used {
		k.used = true
		k.Smallest = Extreme{Size: e.size, At: e.at}
		k.Largest = k.Smallest
	}
	k.Allocated.AddBlock(e.size)
	k.Live.AddBlock(e.size)
	k.lastAlloc = max(k.lastAlloc, e.at)
	k.Smallest.see(e, e.size < k.Smallest.Size)
	k.Largest.see(e, e.size > k.Largest.Size)
	s := k.sizes[e.size]
	if s == nil {
		s = &SizeCount{Size: e.size}
		k.sizes[e.size] = s
	}
	s.Allocated++
	if k.Live.Bytes > k.Peak.Live.Bytes {
		k.Peak = Peak{Allocated: k.Allocated, Live: k.Live, At: e.at, Place: e.place}
	}
}

func (x *Extreme) see(e *event, further bool) {
	if further {
		*x = Extreme{Size: e.size, At: e.at}
	}
	if x.Size == e.size {
		x.Count++
	}
}

// end counts a block that was freed.
func (k *Kind) end(e *event) {
	k.Freed.AddBlock(e.size)
	k.Live.SubBlock(e.size)
	k.sizes[e.size].Freed++
}

// in returns the parts that a call with a mask of contexts belongs to, that of
// all calls first. The slice is valid until the next call.
func (u *Usage) in(k *Kind, mask uint32) []*Part {
	if k.all == nil {
		k.all = &Part{Context: All}
	}
	k.parts = append(k.parts[:0], k.all)
	if len(u.contexts) == 0 {
		return k.parts
	}
	for i := range u.contexts {
		if c := &u.contexts[i]; c.ID&mask != 0 {
			k.parts = append(k.parts, k.part(*c))
		}
	}
	if mask == 0 {
		if k.none == nil {
			k.none = k.part(None)
		}
		k.parts = append(k.parts, k.none)
	}
	return k.parts
}

// part returns the part of a context.
func (k *Kind) part(c Context) *Part {
	at := 0
	for ; at < len(k.Parts) && k.Parts[at].Context.ID <= c.ID; at++ {
		if k.Parts[at].Context.ID == c.ID {
			return k.Parts[at]
		}
	}
	p := &Part{Context: c}
	k.Parts = slices.Insert(k.Parts, at, p)
	return p
}

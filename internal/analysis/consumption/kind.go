package consumption

import "rtrace-bpf/internal/live"

// Kind holds the figures of one type of resource.
type Kind struct {
	Type string
	balance
	sizes
	parts
	// Rates holds the peaks of activity.
	Rates Rates
	// Sum, Overhead and Allocs are the curves of the report of totals: live
	// bytes, live bytes with the allocator's overhead for each block (memory
	// only), and the number of blocks allocated so far.
	Sum, Overhead, Allocs *Curve
	// Lives holds the lifetimes of blocks.
	Lives *Lives

	number    uint32
	counted   bool // refcount
	used      bool
	lastAlloc int64
	padded    padding
	allocs    int // series of Allocs
}

// padding is the allocator's overhead in the report of totals.
type padding struct {
	each   uint64 // bytes for each block; 0 if the report leaves it out
	live   uint64 // bytes of live blocks with their overhead
	series int    // of Kind.Overhead
}

// begin counts a block that began.
func (k *Kind) begin(e *event) {
	k.sizes.begin(e, !k.used)
	k.used = true
	k.lastAlloc = max(k.lastAlloc, e.at)
	k.balance.begin(e)
}

// end counts a block that was freed.
func (k *Kind) end(e *event) {
	k.balance.end(e)
	k.sizes.end(e)
}

// balance is what was allocated and what became of it.
type balance struct {
	// Allocated and Freed are the sums of all blocks; replaced blocks count as
	// freed. Live is the amount at the end.
	Allocated, Freed, Live live.Amount
	// Peak is the moment at which most bytes were live.
	Peak Peak
}

// Peak is the state when the most bytes were live, for the first time.
type Peak struct {
	Allocated, Live live.Amount
	At              int64 // on the axis of the reports
	Place           int64 // on the axis of the curves
}

// begin counts a block that began.
func (b *balance) begin(e *event) {
	b.Allocated.AddBlock(e.size)
	b.Live.AddBlock(e.size)
	if b.Live.Bytes > b.Peak.Live.Bytes {
		b.Peak = Peak{Allocated: b.Allocated, Live: b.Live, At: e.at, Place: e.place}
	}
}

// end counts a block that was freed.
func (b *balance) end(e *event) {
	b.Freed.AddBlock(e.size)
	b.Live.SubBlock(e.size)
}

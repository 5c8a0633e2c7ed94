package timeline

import (
	"math/bits"

	"rtrace-bpf/internal/live"
)

// Totals holds the figures of the whole trace, as mptrace counts them: a move
// is an allocation and a free, the peaks of blocks and of bytes are independent
// maxima, and memory that the allocator got from the system is never given
// back.
type Totals struct {
	Events    uint64
	Began     int64 // when the first call was made, in nanoseconds since 1970; 0 if unknown
	Duration  int64 // nanoseconds between the first and the last call; 0 without a clock
	Allocated live.Amount
	Freed     live.Amount
	Live      live.Amount // at the end
	Unknown   live.Amount // may have been freed in a gap of the recording; not in Live
	// PeakBlocks and PeakBytes are the largest live amounts, and the events are
	// the first ones after which they were live.
	PeakBlocks, PeakBytes           uint64
	PeakBlocksEvent, PeakBytesEvent uint64
	// Smallest and Largest are the sizes of allocations. Sizes of 0 bytes count
	// only if there are no others.
	Smallest, Largest uint64
	Reserved          live.Amount // memory from the system for the program's blocks
	Internal          live.Amount // memory from the system for the recorder of the trace
	Unmatched         uint64      // frees of blocks that were not live
	Replaced          uint64      // blocks that ended because another began at their address
}

func (t *Totals) size(n uint64) {
	t.Largest = max(t.Largest, n)
	if n > 0 && (t.Smallest == 0 || n < t.Smallest) {
		t.Smallest = n
	}
}

func (t *Totals) peak(blocks, bytes, event uint64) {
	if blocks > t.PeakBlocks {
		t.PeakBlocks, t.PeakBlocksEvent = blocks, event
	}
	if bytes > t.PeakBytes {
		t.PeakBytes, t.PeakBytesEvent = bytes, event
	}
}

// Totals returns the figures so far.
func (t *Timeline) Totals() Totals {
	total := t.total
	total.Live.Blocks, total.Live.Bytes = t.blocks.Live()
	total.Unknown.Blocks, total.Unknown.Bytes = t.blocks.Unknown()
	total.Live.Blocks -= total.Unknown.Blocks
	total.Live.Bytes -= total.Unknown.Bytes
	total.Unmatched, total.Replaced = t.blocks.Unmatched(), t.blocks.Replaced()
	return total
}

// Bin counts the blocks whose lifetimes were From to To, both included.
type Bin struct {
	From, To uint64
	live.Amount
}

// bins is the number of bins: one for each length in bits of a 64-bit number,
// and one for 0.
const bins = 65

func count(b *[bins]Bin, life, size uint64) { b[bits.Len64(life)].AddBlock(size) }

// Lifetimes returns the lifetimes of the ended blocks, in events or in
// nanoseconds depending on the axis, in bins of 0, 1, 2 to 3, 4 to 7 and so on
// up to the longest. A move does not restart the lifetime of a block but counts
// as an end.
func (t *Timeline) Lifetimes() []Bin {
	from := &t.byAge
	if t.Axis() == ByTime {
		from = &t.byTime
	}
	all := *from
	n := 0
	for i := range all {
		if i > 0 {
			all[i].From, all[i].To = 1<<(i-1), 1<<(i-1)-1+1<<(i-1)
		}
		if all[i].Blocks > 0 {
			n = i + 1
		}
	}
	return all[:n]
}

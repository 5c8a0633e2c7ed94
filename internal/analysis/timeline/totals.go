package timeline

import (
	"math/bits"

	"rtrace-bpf/internal/live"
)

// Totals are the figures of the whole trace, as mptrace counts them: a move is
// an allocation and a free, the peaks of blocks and of bytes are maxima of
// their own, and what the allocator got from the system is never given back.
type Totals struct {
	Events    uint64
	Duration  int64 // nanoseconds between the first and the last call; 0 without a clock
	Allocated live.Amount
	Freed     live.Amount
	Live      live.Amount // at the end
	Unknown   live.Amount // of what was live when the recording had a gap: it may have been freed then, and is not in Live
	// PeakBlocks and PeakBytes are the most that was live, and the first events
	// after which it was.
	PeakBlocks, PeakBytes           uint64
	PeakBlocksEvent, PeakBytesEvent uint64
	// Smallest and Largest are sizes of allocations; of 0 bytes only if there
	// are no others.
	Smallest, Largest uint64
	Reserved          live.Amount // memory from the system for the program's blocks
	Internal          live.Amount // for what records the trace
	Unmatched         uint64      // frees of blocks that were not live
	Replaced          uint64      // blocks that ended because another began in their place
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

// Bin counts the blocks whose lives were From to To long, both included.
type Bin struct {
	From, To uint64
	live.Amount
}

// bins is one for each length in bits of a 64-bit number, and one for 0.
const bins = 65

func count(b *[bins]Bin, life, size uint64) { b[bits.Len64(life)].AddBlock(size) }

// Lifetimes returns how long the blocks lived that ended, in events or in
// nanoseconds by the axis, in bins of 0, 1, 2 to 3, 4 to 7 and so on up to the
// longest. A move does not restart the life of a block but counts as an end.
func (t *Timeline) Lifetimes() []Bin {
	from := &t.byAge
	if t.axis == ByTime {
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

package consumption

import (
	"fmt"

	"rtrace-bpf/internal/live"
)

// Summary is the histogram's summary of some blocks of a type of resource.
type Summary struct {
	live.Amount
	Median uint64 // of the sizes, rounded down; 0 if there are none
}

// Summaries returns the summaries of the freed blocks, the unfreed blocks, and
// both.
func (p *plot) Summaries(k *Kind) (freed, unfreed, both Summary) {
	sizes, legacy := k.Sizes(), p.options.Legacy
	sum := func(count func(*SizeCount) uint64) Summary {
		s := Summary{Median: median(sizes, count, legacy)}
		for i := range sizes {
			n := count(&sizes[i])
			s.Blocks += n
			s.Bytes += n * sizes[i].Size
		}
		return s
	}
	freed = sum(func(s *SizeCount) uint64 { return s.Freed })
	unfreed = sum((*SizeCount).Unfreed)
	both = sum(func(s *SizeCount) uint64 { return s.Allocated })
	if legacy {
		both.Amount = live.Amount{}
	}
	return freed, unfreed, both
}

// median returns the median, for an even number of blocks the mean of the two
// in the middle. The original takes the next two: for an even number of blocks,
// the one after the middle and the next; for just two, the element after the
// end, which was 0.
func median(sizes []SizeCount, count func(*SizeCount) uint64, legacy bool) uint64 {
	var n uint64
	for i := range sizes {
		n += count(&sizes[i])
	}
	if n == 0 {
		return 0
	}
	nth := func(at uint64) uint64 {
		for i := range sizes {
			c := count(&sizes[i])
			if at < c {
				return sizes[i].Size
			}
			at -= c
		}
		return sizes[len(sizes)-1].Size
	}
	middle := nth(n / 2)
	if n%2 == 1 {
		return middle
	}
	other := nth(n/2 - 1)
	if legacy {
		other = 0
		if n > 2 {
			other = nth(n/2 + 1)
		}
	}
	return middle/2 + other/2 + (middle%2+other%2)/2
}

// histograms is the reports of the sizes of blocks.
type histograms struct {
	*plot
}

// finish writes the series of both histograms.
func (h histograms) finish() {
	for _, report := range []Report{Count, Size} {
		if !h.options.Reports.Has(report) {
			continue
		}
		for _, k := range h.Kinds() {
			name := "size"
			if len(h.Kinds()) > 1 {
				name = fmt.Sprintf("size of %s", k.Type)
			}
			n := h.sink.Begin(report, name)
			for _, s := range k.Sizes() {
				bytes := uint64(1)
				if report == Size {
					bytes = s.Size
				}
				h.sink.Row(n, s.Size, s.Unfreed()*bytes, s.Freed*bytes)
			}
		}
	}
}

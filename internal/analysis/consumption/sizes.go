package consumption

import (
	"cmp"
	"slices"
)

// sizes counts the blocks of each size.
type sizes struct {
	// Smallest and Largest are the extreme sizes of allocations.
	Smallest, Largest Extreme

	counts map[uint64]*SizeCount
}

// Extreme is a size, the number of blocks of that size, and the time of the
// first one.
type Extreme struct {
	Size, Count uint64
	At          int64
}

func (x *Extreme) see(e *event, further bool) {
	if further {
		*x = Extreme{Size: e.size, At: e.at}
	}
	if x.Size == e.size {
		x.Count++
	}
}

// SizeCount is the number of blocks of a size.
type SizeCount struct {
	Size, Allocated, Freed uint64
}

// Unfreed returns the number of them that were not freed.
func (s *SizeCount) Unfreed() uint64 { return s.Allocated - s.Freed }

// Sizes returns the allocated sizes, the smallest first.
func (s *sizes) Sizes() []SizeCount {
	out := make([]SizeCount, 0, len(s.counts))
	for _, c := range s.counts {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b SizeCount) int { return cmp.Compare(a.Size, b.Size) })
	return out
}

// begin counts a block that began. first reports that it is the first one.
func (s *sizes) begin(e *event, first bool) {
	if first {
		s.Smallest = Extreme{Size: e.size, At: e.at}
		s.Largest = s.Smallest
	}
	s.Smallest.see(e, e.size < s.Smallest.Size)
	s.Largest.see(e, e.size > s.Largest.Size)
	c := s.counts[e.size]
	if c == nil {
		c = &SizeCount{Size: e.size}
		s.counts[e.size] = c
	}
	c.Allocated++
}

// end counts a block that was freed.
func (s *sizes) end(e *event) { s.counts[e.size].Freed++ }

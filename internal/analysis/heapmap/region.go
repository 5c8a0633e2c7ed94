package heapmap

import (
	"cmp"
	"slices"
)

// Region is a part of the address space in whole pages of 4 KiB. It contains
// blocks and memory that the allocator got from the system, without large gaps
// between them.
type Region struct {
	Start, Last uint64 // both included
}

// Size returns the length in bytes.
func (r Region) Size() uint64 { return r.Last - r.Start + 1 }

const (
	page = 4096
	// A gap of at most minGap never divides regions, and one above maxGap
	// always does. Between them the threshold is a quarter of the region's
	// size.
	minGap, maxGap = 256 << 10, 16 << 20
	// maxRegion is the largest size of a region, so that offsets in it are
	// exact in floating point. No address space is larger.
	maxRegion = 1 << 52
)

// Regions returns all regions in order. If there are more than limit, it merges
// regions across larger gaps.
func (m *Map) Regions(limit int) []Region {
	extents := m.extents()
	low, high := uint64(minGap), uint64(maxGap)
	for {
		regions := cluster(extents, low, high)
		if len(regions) <= max(1, limit) || low > 1<<60 {
			return regions
		}
		low, high = low*4, max(high, low*4)
	}
}

// extents returns the ranges that are in use at any time, in order and merged.
func (m *Map) extents() []Region {
	all := make([]Region, 0, m.Len()+len(m.Heap())+len(m.Internal())+len(m.Freed()))
	for b := range m.Blocks() {
		all = append(all, Region{b.Address, b.Last()})
	}
	for _, list := range [][]Span{m.Heap(), m.Internal(), m.Freed()} {
		for _, s := range list {
			all = append(all, Region{s.Start, s.Last})
		}
	}
	return union(all)
}

// union sorts ranges and merges those that overlap or touch.
func union(all []Region) []Region {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b Region) int { return cmp.Compare(a.Start, b.Start) })
	out := all[:1]
	for _, r := range all[1:] {
		p := &out[len(out)-1]
		if r.Start <= p.Last || r.Start == p.Last+1 {
			p.Last = max(p.Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return out
}

func cluster(extents []Region, low, high uint64) []Region {
	var out []Region
	for _, e := range extents {
		e.Start &^= page - 1
		e.Last |= page - 1
		e.Last = min(e.Last, e.Start+min(maxRegion-1, ^e.Start))
		if n := len(out); n > 0 {
			p := &out[n-1]
			gap := min(max(p.Size()/4, low), high)
			if (e.Start <= p.Last || e.Start-p.Last-1 <= gap) && e.Last-p.Start < maxRegion {
				p.Last = max(p.Last, e.Last)
				continue
			}
			if e.Start <= p.Last { // the rest of what is too large for one region
				if e.Last <= p.Last {
					continue
				}
				e.Start = p.Last + 1
			}
		}
		out = append(out, e)
	}
	return out
}

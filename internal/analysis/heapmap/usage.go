package heapmap

import "slices"

// Usage is the content of a region after an event, in bytes.
type Usage struct {
	Blocks, Bytes uint64 // live; a block counts in the region where it begins
	// Free is the memory that no block has now, but that the allocator got from
	// the system or that blocks had before. Where the memory from the system is
	// known, it includes the headers and the padding of blocks.
	Free uint64
	// LargestFree is the longest contiguous range of Free.
	LargestFree uint64
}

// Fragmentation returns the share of the free memory outside of its longest
// range, from 0 to 1.
func (u Usage) Fragmentation() float64 {
	if u.Free == 0 {
		return 0
	}
	return 1 - float64(u.LargestFree)/float64(u.Free)
}

// Usage returns the content of each of the given regions, which must be in
// order and not overlap.
func (m *Map) Usage(regions []Region, event uint64) []Usage {
	out := make([]Usage, len(regions))
	known := make([]Region, 0, m.Len())
	var used []Region
	for b := range m.Blocks() {
		if b.Born > event {
			continue
		}
		known = append(known, Region{b.Address, b.Last()})
		if b.live(event) {
			used = append(used, Region{b.Address, b.Last()})
			if i, ok := find(regions, b.Address); ok {
				out[i].Blocks++
				out[i].Bytes += b.Size
			}
		}
	}
	for _, list := range [][]Span{m.Heap(), m.Freed()} {
		for _, s := range list {
			if s.Since <= event {
				known = append(known, Region{s.Start, s.Last})
			}
		}
	}
	used = union(used)
	for _, k := range union(known) {
		for at := k.Start; ; {
			for len(used) > 0 && used[0].Last < at {
				used = used[1:]
			}
			if len(used) == 0 || used[0].Start > k.Last {
				free(regions, out, at, k.Last)
				break
			}
			if used[0].Start > at {
				free(regions, out, at, used[0].Start-1)
			}
			if used[0].Last >= k.Last {
				break
			}
			at = used[0].Last + 1
		}
	}
	return out
}

// find returns the index of the region that contains an address; otherwise ok
// is false and the index is that of the next region.
func find(regions []Region, address uint64) (int, bool) {
	i, ok := slices.BinarySearchFunc(regions, address, func(r Region, a uint64) int {
		switch {
		case r.Last < a:
			return -1
		case r.Start > a:
			return 1
		}
		return 0
	})
	return i, ok
}

// free counts a range as free in the regions that it overlaps.
func free(regions []Region, out []Usage, start, last uint64) {
	i, _ := find(regions, start)
	for ; i < len(regions) && regions[i].Start <= last; i++ {
		n := min(last, regions[i].Last) - max(start, regions[i].Start) + 1
		out[i].Free += n
		out[i].LargestFree = max(out[i].LargestFree, n)
	}
}

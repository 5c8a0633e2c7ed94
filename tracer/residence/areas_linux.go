package residence

import (
	"cmp"
	"iter"
	"slices"
)

// Area is the room that the kernel found for a mapping. The mapping is somewhere in it: for huge
// pages the kernel wants more than it then uses.
type Area struct {
	Start, Size uint64
	Populated   bool // the pages are made at once
	Cause       Cause
}

// hugePage is what the kernel aligns large mappings to, in bytes.
const hugePage = 2 << 20

// maxAreas is how many areas are remembered. Pages in others can become unattributed.
const maxAreas = 1 << 16

// areas are those whose mappings may still be there, by address, without overlaps. They explain
// pages that came without a fault.
type areas []areaOf

type areaOf struct {
	start, end uint64
	by         origin
	looked     bool // it was there at a look
}

// put adds an area. Other areas keep the addresses that are not in it: its own were free.
func (all *areas) put(a areaOf) {
	from, _ := slices.BinarySearchFunc(*all, a.start, func(x areaOf, at uint64) int { return cmp.Compare(x.end, at+1) })
	to := from
	for to < len(*all) && (*all)[to].start < a.end {
		to++
	}
	if to == from && len(*all) == maxAreas {
		return
	}
	parts := []areaOf{a}
	if from < to {
		first, last := (*all)[from], (*all)[to-1]
		if first.start < a.start {
			first.end = a.start
			parts = []areaOf{first, a}
		}
		if last.end > a.end {
			last.start = a.end
			parts = append(parts, last)
		}
	}
	*all = slices.Replace(*all, from, to, parts...)
}

// at returns the origin of an address, noOrigin if it is in no area.
func (all areas) at(addr uint64) origin {
	i, _ := slices.BinarySearchFunc(all, addr, func(x areaOf, at uint64) int { return cmp.Compare(x.end, at+1) })
	if i < len(all) && all[i].start <= addr {
		return all[i].by
	}
	return noOrigin
}

// drop removes the areas in which nothing is mapped any more. It keeps those that came after the
// last look: their mapping may be younger than the list of mappings in v, which was read earlier
// than the pages.
func (all *areas) drop(v *View) {
	*all = slices.DeleteFunc(*all, func(a areaOf) bool { return a.looked && !v.maps(a.start, a.end) })
	for i := range *all {
		(*all)[i].looked = true
	}
}

// Map notes that a mapping is made.
func (l *Ledger) Map(a Area) {
	l.unmapped(a.Start, a.Start+a.Size)
	by := l.number(a.Cause)
	if !a.Populated {
		l.areas.put(areaOf{start: a.Start, end: a.Start + a.Size, by: by})
		return
	}
	for at := a.Start; at < a.Start+a.Size; at += l.page {
		l.touch(at, by, false)
	}
}

// unmapped notes that there was no mapping from start up to end.
func (l *Ledger) unmapped(start, end uint64) {
	size := chunkPages * l.page
	for at, c := range l.within(start/size, (end+size-1)/size) {
		from, to := max(start, at*size), min(end, (at+1)*size)
		c.unmapped(int(from/l.page%chunkPages), int((to-1)/l.page%chunkPages)+1)
	}
}

// within returns the chunks with the numbers from first up to, but not including, end.
func (l *Ledger) within(first, end uint64) iter.Seq2[uint64, *chunk] {
	return func(yield func(uint64, *chunk) bool) {
		if end-first > uint64(len(l.chunks)) { // of addresses that are only reserved
			for at, c := range l.chunks {
				if at >= first && at < end && !yield(at, c) {
					return
				}
			}
			return
		}
		for at := first; at < end; at++ {
			if c := l.chunks[at]; c != nil && !yield(at, c) {
				return
			}
		}
	}
}

// Move notes that size bytes of memory at old move to an area, with the pages that are there.
func (l *Ledger) Move(old, size uint64, to Area) {
	l.unmapped(to.Start, to.Start+to.Size)
	addr := to.Start
	if to.Size >= size+hugePage {
		addr += (old - addr) % hugePage // as it was aligned before
	}
	for start := old; start < old+size; {
		at := start / (chunkPages * l.page)
		end := min(old+size, (at+1)*chunkPages*l.page)
		if c := l.chunks[at]; c != nil {
			l.moveFrom(c, start, end, addr+start-old)
		}
		start = end
	}
	l.areas.put(areaOf{start: to.Start, end: to.Start + to.Size, by: l.number(to.Cause)})
}

// moveFrom is Move within a chunk. Where no fault is known of a page, the nearest one counts, as
// in a look: a huge page moves as a whole.
func (l *Ledger) moveFrom(c *chunk, start, end, addr uint64) {
	near := c.nearest(&pageSet{}, func(i, j int) bool { return false })
	for ; start < end; start, addr = start+l.page, addr+l.page {
		i := int(start / l.page % chunkPages)
		from := c.origin(i)
		if from == noOrigin && near[i] >= 0 {
			from = c.origin(int(near[i]))
		}
		if from == noOrigin {
			from = l.areas.at(start)
		}
		if from != noOrigin {
			l.touch(addr, from, false)
		}
	}
}

package residence

import (
	"cmp"
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
}

// put adds an area, in place of those that it overlaps: its addresses were free.
func (all *areas) put(a areaOf) {
	from, _ := slices.BinarySearchFunc(*all, a.start, func(x areaOf, at uint64) int { return cmp.Compare(x.end, at+1) })
	to := from
	for to < len(*all) && (*all)[to].start < a.end {
		to++
	}
	if to == from && len(*all) == maxAreas {
		return
	}
	*all = slices.Replace(*all, from, to, a)
}

// at returns the origin of an address, noOrigin if it is in no area.
func (all areas) at(addr uint64) origin {
	i, _ := slices.BinarySearchFunc(all, addr, func(x areaOf, at uint64) int { return cmp.Compare(x.end, at+1) })
	if i < len(all) && all[i].start <= addr {
		return all[i].by
	}
	return noOrigin
}

// drop removes the areas in which nothing is mapped any more.
func (all *areas) drop(v *View) {
	*all = slices.DeleteFunc(*all, func(a areaOf) bool { return !v.maps(a.start, a.end) })
}

// Map notes that a mapping is made.
func (l *Ledger) Map(a Area) {
	by := l.number(a.Cause)
	if !a.Populated {
		l.areas.put(areaOf{a.Start, a.Start + a.Size, by})
		return
	}
	for at := a.Start; at < a.Start+a.Size; at += l.page {
		l.touch(at, by, false)
	}
}

// Move notes that size bytes of memory at old move to an area, with the pages that are there.
func (l *Ledger) Move(old, size uint64, to Area) {
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
	l.areas.put(areaOf{to.Start, to.Start + to.Size, l.number(to.Cause)})
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

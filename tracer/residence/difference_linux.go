package residence

import "slices"

// difference is what has changed in a chunk since the last look.
type difference struct {
	l       *Ledger
	c       *chunk
	at      uint64 // number of the chunk
	now     pageSet
	borders []uint64 // of mappings, in this chunk, ascending
	change  func(*Change)
}

// run notes the difference.
func (d *difference) run() {
	c := d.c
	again := c.returned(&d.now, d.l.trusts)
	gone := without(&c.resident, &d.now)
	gone = either(&gone, &again)
	came := without(&d.now, &c.resident)
	came = either(&came, &again)
	if gone.empty() && came.empty() {
		return
	}
	loose := d.free(&gone)
	d.own(&came)
	c.resident = d.now
	loose = either(&loose, &came)
	d.bind(&loose)
}

// free ends the blocks that have lost pages, and returns what is left of them.
func (d *difference) free(gone *pageSet) (left pageSet) {
	c := d.c
	for i := 0; i < chunkPages; {
		if !c.resident.has(i) || c.owner[i] == fromBefore {
			if gone.has(i) {
				d.l.sums.Before -= d.l.page
				c.owner[i] = noOrigin
			}
			i++
			continue
		}
		from, lost := i, gone.has(i)
		for i++; i < chunkPages && c.resident.has(i) && !c.begins.has(i) && c.owner[i] == c.owner[from]; i++ {
			lost = lost || gone.has(i)
		}
		if !lost {
			continue
		}
		d.emit(from, i, true)
		c.begins[from/64] &^= 1 << (from % 64)
		for j := from; j < i; j++ {
			if gone.has(j) {
				*d.sum(c.owner[j]) -= d.l.page
				c.owner[j] = noOrigin
			} else {
				left.add(j)
			}
		}
	}
	return left
}

// own finds out where the pages that have come are from.
func (d *difference) own(came *pageSet) {
	if came.empty() {
		return
	}
	c := d.c
	near := c.nearest(came, d.apart)
	var owner [chunkPages]origin
	for i := range chunkPages {
		if !came.has(i) {
			continue
		}
		owner[i] = unknown
		switch j := near[i]; {
		case j < 0:
			if by := d.l.areas.at(d.address(i)); by != noOrigin {
				owner[i] = by
			}
		case c.faults != nil && c.faults.seen.has(int(j)):
			owner[i] = c.faults.by[j]
		default:
			owner[i] = c.owner[j]
		}
	}
	for i := range chunkPages {
		if came.has(i) {
			c.owner[i] = owner[i]
			*d.sum(owner[i]) += d.l.page
		}
	}
}

// bind makes blocks of pages.
func (d *difference) bind(loose *pageSet) {
	c := d.c
	for i := 0; i < chunkPages; {
		if !loose.has(i) {
			i++
			continue
		}
		from := i
		for i++; i < chunkPages && loose.has(i) && c.owner[i] == c.owner[from] && !d.apart(i-1, i); i++ {
		}
		c.begins.add(from)
		if i < chunkPages && c.resident.has(i) && c.owner[i] != fromBefore {
			c.begins.add(i) // a block that was there continues to be one of its own
		}
		if c.owner[from] != fromBefore { // what was there before has only moved
			d.emit(from, i, false)
		}
	}
}

// address returns the address of a page.
func (d *difference) address(i int) uint64 { return (d.at*chunkPages + uint64(i)) * d.l.page }

// apart reports whether a border of mappings is between two pages.
func (d *difference) apart(i, j int) bool {
	if len(d.borders) == 0 {
		return false
	}
	first := d.address(i)
	at, _ := slices.BinarySearch(d.borders, first+1)
	return at < len(d.borders) && d.borders[at] <= first+uint64(j-i)*d.l.page
}

// sum returns the sum that the pages of an origin are part of.
func (d *difference) sum(from origin) *uint64 {
	switch from {
	case fromBefore:
		return &d.l.sums.Before
	case unknown:
		return &d.l.sums.Unknown
	}
	return &d.l.sums.Attributed
}

// emit passes on that the block of pages from up to to has come or gone.
func (d *difference) emit(from, to int, gone bool) {
	x := Change{Gone: gone, Start: d.address(from), End: d.address(to)}
	if n := d.c.owner[from]; n >= firstStack {
		x.Cause, x.Known = d.l.causes[n-firstStack], true
	}
	d.change(&x)
}

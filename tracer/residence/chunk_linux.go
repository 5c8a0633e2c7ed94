package residence

import "math/bits"

// chunkPages is how many pages a chunk has: with pages of 4 KiB, as many as a huge page.
const chunkPages = 512

// pageSet is a set of the pages of a chunk, a bit for each.
type pageSet [chunkPages / 64]uint64

func (s *pageSet) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }

func (s *pageSet) add(i int) { s[i/64] |= 1 << (i % 64) }

func (s *pageSet) empty() bool { return *s == pageSet{} }

// addRange adds the pages from up to, but not including, to.
func (s *pageSet) addRange(from, to int) {
	for i := from; i < to; {
		n := min(64-i%64, to-i)
		s[i/64] |= (1<<n - 1) << (i % 64)
		if n == 64 {
			s[i/64] = ^uint64(0)
		}
		i += n
	}
}

// count returns the number of pages.
func (s *pageSet) count() (n uint64) {
	for _, w := range s {
		n += uint64(bits.OnesCount64(w))
	}
	return n
}

// combine returns the set of pages that of reports, given a word of each of two sets.
func combine(a, b *pageSet, of func(a, b uint64) uint64) (s pageSet) {
	for i := range s {
		s[i] = of(a[i], b[i])
	}
	return s
}

func without(a, b *pageSet) pageSet {
	return combine(a, b, func(a, b uint64) uint64 { return a &^ b })
}

func both(a, b *pageSet) pageSet {
	return combine(a, b, func(a, b uint64) uint64 { return a & b })
}

func either(a, b *pageSet) pageSet {
	return combine(a, b, func(a, b uint64) uint64 { return a | b })
}

// chunk is what is known of the pages of a naturally aligned range of addresses.
type chunk struct {
	resident pageSet            // at the last look
	begins   pageSet            // the resident pages with which a block begins
	owner    [chunkPages]origin // of resident pages
	faults   *chunkFaults       // nil for none
}

// chunkFaults is the page faults since the last look. A fault whose page is not there at the look
// after it is kept until the next one, because the kernel may have been busy with it.
type chunkFaults struct {
	seen  pageSet // pages with a fault
	fresh pageSet // of these, pages that were not there at the fault
	kept  pageSet // of these, pages whose fault is older than the last look
	gone  pageSet // pages of the last look whose mapping has gone since
	by    [chunkPages]origin
}

// fault notes a page fault. present is set if the page was there, so that the fault has made it
// writable, or a copy of it.
func (c *chunk) fault(i int, by origin, present bool) {
	f := c.faults
	if present && c.resident.has(i) && (f == nil || !f.gone.has(i)) {
		return
	}
	if f == nil {
		f = new(chunkFaults)
		c.faults = f
	}
	if present && f.seen.has(i) {
		return // the page of zeros was there, or one that is shared
	}
	f.seen.add(i)
	f.by[i] = by
	f.kept[i/64] &^= 1 << (i % 64)
	if !present {
		f.fresh.add(i)
	}
}

// unmapped notes that the pages from up to, but not including, to have no mapping, or a new one.
func (c *chunk) unmapped(from, to int) {
	var set pageSet
	set.addRange(from, to)
	gone := both(&c.resident, &set)
	if c.faults == nil {
		if gone.empty() {
			return
		}
		c.faults = new(chunkFaults)
	}
	f := c.faults
	f.seen, f.fresh, f.kept = without(&f.seen, &set), without(&f.fresh, &set), without(&f.kept, &set)
	f.gone = either(&f.gone, &gone)
}

// returned returns the resident pages that have gone and come back since the last look. trusts is
// as for the ledger.
func (c *chunk) returned(now *pageSet, trusts bool) (again pageSet) {
	if c.faults == nil {
		return again
	}
	again = both(&c.faults.gone, &c.faults.seen)
	if trusts {
		again = either(&again, &c.faults.fresh)
	}
	again = both(&again, &c.resident)
	return both(&again, now)
}

// origin returns what is known of the origin of a page.
func (c *chunk) origin(i int) origin {
	switch {
	case c.faults != nil && c.faults.seen.has(i):
		return c.faults.by[i]
	case c.resident.has(i) && (c.faults == nil || !c.faults.gone.has(i)):
		return c.owner[i]
	}
	return noOrigin
}

// looked ends the faults that a look has used.
func (c *chunk) looked() {
	if c.faults == nil {
		return
	}
	f := c.faults
	f.gone = without(&f.gone, &f.seen)
	f.gone = both(&f.gone, &c.resident)
	rest := without(&f.seen, &c.resident)
	rest = without(&rest, &f.kept)
	if rest.empty() && f.gone.empty() {
		c.faults = nil
		return
	}
	f.seen, f.kept, f.fresh = rest, rest, both(&f.fresh, &rest)
}

// nearest returns, for each page of a set that has no fault of its own, the page whose fault has
// most likely brought it: the one with which it shares the smallest naturally aligned block, and
// of two such the nearer one. A page without one has -1. apart reports whether there is a border
// of mappings between two pages.
//
// The kernel makes pages resident in such blocks: huge pages, folios of several sizes, and the
// pages of a file around the one that was touched.
func (c *chunk) nearest(came *pageSet, apart func(i, j int) bool) (by [chunkPages]int16) {
	known := func(i int) bool {
		if c.faults != nil && c.faults.seen.has(i) {
			return true
		}
		return c.resident.has(i) && !came.has(i) && c.owner[i] >= firstStack
	}
	last := -1
	for i := range chunkPages {
		if known(i) {
			last = i
		}
		by[i] = -1
		if last >= 0 && !apart(last, i) {
			by[i] = int16(last)
		}
	}
	next := -1
	for i := chunkPages - 1; i >= 0; i-- {
		if known(i) {
			next = i
		}
		if next < 0 || apart(i, next) {
			continue
		}
		before := int(by[i])
		if before < 0 || closer(i, next, before) {
			by[i] = int16(next)
		}
	}
	return by
}

// closer reports whether page a is closer to page i than page b is.
func closer(i, a, b int) bool {
	sizeA, sizeB := bits.Len(uint(i^a)), bits.Len(uint(i^b))
	if sizeA != sizeB {
		return sizeA < sizeB
	}
	return max(i-a, a-i) < max(i-b, b-i)
}

package modules

import (
	"os"
	"slices"
	"sort"
)

// region is a mapping that a call has made, or what is left of it.
type region struct {
	start, end uint64
	resource   uint32
}

// regions is sorted by address, without overlaps.
type regions []region

// roundUp rounds a length up to pages.
func roundUp(length uint64) uint64 {
	page := uint64(os.Getpagesize())
	return (length + page - 1) &^ (page - 1)
}

// overlapped returns the index range, from to to, of the regions that overlap [start, end).
func (rs regions) overlapped(start, end uint64) (from, to int) {
	from = sort.Search(len(rs), func(i int) bool { return rs[i].end > start })
	for to = from; to < len(rs) && rs[to].start < end; to++ {
	}
	return from, to
}

// keys returns the resources that end when [start, end) is unmapped.
func (rs regions) keys(start, end uint64) (all []key) {
	from, to := rs.overlapped(start, end)
	for _, r := range rs[from:to] {
		all = append(all, key{r.resource, r.start})
	}
	return all
}

// cut removes [start, end) and returns what is left of the regions there.
func (rs *regions) cut(start, end uint64) (left regions) {
	from, to := rs.overlapped(start, end)
	for _, r := range (*rs)[from:to] {
		if r.start < start {
			left = append(left, region{r.start, start, r.resource})
		}
		if r.end > end {
			left = append(left, region{end, r.end, r.resource})
		}
	}
	*rs = slices.Replace(*rs, from, to, left...)
	return left
}

// put adds a region where there is none.
func (rs *regions) put(r region) {
	at, _ := rs.overlapped(r.start, r.end)
	*rs = slices.Insert(*rs, at, r)
}

// regionsOf returns the regions of the call's module.
func regionsOf(c *call) *regions {
	if c.mappings[c.module] == nil {
		c.mappings[c.module] = new(regions)
	}
	return c.mappings[c.module]
}

// unmap records that memory is unmapped. The rest of each mapping is recorded as a new
// allocation.
func unmap(c *call, start, end uint64) {
	for _, r := range regionsOf(c).cut(start, end) {
		c.allocAs(r.resource, r.start, r.end-r.start)
	}
}

// addMapping records a mapping.
func addMapping(c *call, resource string, start, length uint64, args ...argument) {
	r := region{start, start + roundUp(length), c.number(c.module, resource)}
	for _, k := range regionsOf(c).keys(r.start, r.end) { // the kernel has unmapped what was there
		c.acts = append(c.acts, c.freed(&end{key: k}))
	}
	unmap(c, r.start, r.end)
	regionsOf(c).put(r)
	c.alloc(resource, start, length, args...)
}

// unmaps returns the mappings that munmap ends.
func unmaps(c *call) []key { return regionsOf(c).keys(c.word(0), c.word(0)+roundUp(c.word(1))) }

func unmapped(c *call) { unmap(c, c.word(0), c.word(0)+roundUp(c.word(1))) }

package heapview

import (
	"cmp"
	"slices"
	"sort"

	"rtrace-bpf/internal/analysis/heapmap"
)

// run is a block of a page, or several merged ones.
type run struct {
	offset       uint64 // in the region
	size         uint64
	born, life   uint64 // in events; a life of 0 means to the end
	bytes        uint64
	count        uint32
	region       uint32
	thread, site uint32 // 1 + index; 0 if merged blocks differ
}

// collect returns the blocks that begin in the given regions, by address. The
// regions must be in order.
func collect(m *heapmap.Map, regions []heapmap.Region) []run {
	runs := make([]run, 0, m.Len())
	for b := range m.Blocks() {
		i := sort.Search(len(regions), func(i int) bool { return regions[i].Last >= b.Address })
		if i == len(regions) || regions[i].Start > b.Address {
			continue
		}
		r := run{
			region: uint32(i), offset: b.Address - regions[i].Start, size: b.Size, born: b.Born,
			bytes: b.Size, count: 1, thread: b.Thread + 1, site: b.Site + 1,
		}
		r.size = min(r.size, regions[i].Size()-r.offset)
		if b.Died != 0 {
			r.life = b.Died - b.Born
		}
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b run) int {
		return cmp.Or(cmp.Compare(a.region, b.region), cmp.Compare(a.offset, b.offset), cmp.Compare(a.born, b.born))
	})
	return runs
}

// merge joins neighbours that are at most slack bytes apart and have the same
// state at all multiples of step and at the events of also. It reuses runs.
func merge(runs []run, step, slack uint64, also ...uint64) []run {
	if len(runs) == 0 {
		return runs
	}
	// up returns the first of these events at which the state after an event is
	// visible.
	up := func(event uint64) uint64 {
		seen := (event + step - 1) / step * step
		for _, a := range also {
			if a >= event {
				seen = min(seen, a)
			}
		}
		return seen
	}
	out := runs[:1]
	for _, r := range runs[1:] {
		p := &out[len(out)-1]
		end := p.offset + p.size
		same := up(r.born) == up(p.born) && (r.life == 0) == (p.life == 0) && (r.life == 0 || up(r.born+r.life) == up(p.born+p.life))
		if r.region != p.region || !same || r.offset < end || r.offset-end > slack {
			out = append(out, r)
			continue
		}
		p.size = r.offset + r.size - p.offset
		if p.life != 0 {
			p.life = max(p.born+p.life, r.born+r.life)
		}
		p.born = min(p.born, r.born)
		if p.life != 0 {
			p.life -= p.born
		}
		p.bytes += r.bytes
		p.count += r.count
		if p.thread != r.thread {
			p.thread = 0
		}
		if p.site != r.site {
			p.site = 0
		}
	}
	return out
}

// clip returns the parts of ranges that lie in a region, as offsets.
func clip(list []heapmap.Span, r heapmap.Region) []heapmap.Span {
	var out []heapmap.Span
	from := sort.Search(len(list), func(i int) bool { return list[i].Last >= r.Start })
	for _, s := range list[from:] {
		if s.Start > r.Last {
			break
		}
		out = append(out, heapmap.Span{Start: max(s.Start, r.Start) - r.Start, Last: min(s.Last, r.Last) - r.Start, Since: s.Since})
	}
	return out
}

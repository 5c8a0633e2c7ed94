package lines

import (
	"cmp"
	"math"
	"slices"
)

// cover records which node owns which addresses: the innermost one that covers them.
func (f *functions) cover(spans []span) {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.node, b.node))
	})
	f.starts, f.owners = make([]uint64, 0, len(spans)), make([]int32, 0, len(spans))
	var open []span // each begins inside the one before it
	for _, s := range spans {
		open = f.close(open, s.start)
		open = append(open, s)
		f.give(s.start, s.node)
	}
	f.close(open, math.MaxUint64)
}

// close removes the spans that end at or before addr from the list of open spans. What
// follows each goes to the span around it.
func (f *functions) close(open []span, addr uint64) []span {
	for len(open) > 0 && open[len(open)-1].end <= addr {
		end := open[len(open)-1].end
		for len(open) > 0 && open[len(open)-1].end <= end {
			open = open[:len(open)-1]
		}
		owner := int32(none)
		if len(open) > 0 {
			owner = open[len(open)-1].node
		}
		f.give(end, owner)
	}
	return open
}

// give records that a node owns everything from start on.
func (f *functions) give(start uint64, owner int32) {
	n := len(f.starts)
	switch {
	case n > 0 && f.starts[n-1] == start:
		f.owners[n-1] = owner
	case n == 0 || f.owners[n-1] != owner:
		f.starts, f.owners = append(f.starts, start), append(f.owners, owner)
	}
}

// find returns the innermost node that owns addr, or none.
func (f *functions) find(addr uint64) int32 {
	i, found := slices.BinarySearch(f.starts, addr)
	if !found {
		i--
	}
	if i < 0 {
		return none
	}
	return f.owners[i]
}

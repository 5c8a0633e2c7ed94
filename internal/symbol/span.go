package symbol

import "math"

// group is the entries at one address.
type group struct {
	first      int32 // the preferred entry
	addr, size uint64
	label      bool   // untyped
	inner      bool   // a label that is not visible outside
	stop       uint64 // where it ends at the latest if it has no size
}

// spans fills in starts and owners: which entry owns which addresses.
//
// A symbol with a size owns that many bytes. One without a size owns the bytes up to the
// next function or visible label, but not beyond the end of its section. Where symbols are
// nested, the inner one owns its part. A label owns nothing that a function owns.
func (b *builder) spans() {
	groups := b.groups()
	t := &b.table
	// Leave room for a gap after every eighth function, which is more than most programs
	// have.
	t.starts, t.owners = make([]uint64, 0, len(groups)*9/8), make([]int32, 0, len(groups)*9/8)
	var open []span
	// give records that owner has everything from start on. A later call for the same start
	// replaces it.
	give := func(start uint64, owner int32) {
		if n := len(t.starts); n > 0 && t.starts[n-1] == start {
			t.owners[n-1] = owner
			return
		}
		if n := len(t.owners); n > 0 && t.owners[n-1] == owner || n == 0 && owner < 0 {
			return
		}
		t.starts, t.owners = append(t.starts, start), append(t.owners, owner)
	}
	// leave closes all spans that end at or before addr.
	leave := func(addr uint64) {
		for len(open) > 0 && open[len(open)-1].end <= addr {
			end := open[len(open)-1].end
			for len(open) > 0 && open[len(open)-1].end <= end {
				open = open[:len(open)-1]
			}
			owner := int32(-1)
			if len(open) > 0 {
				owner = open[len(open)-1].owner
			}
			give(end, owner)
		}
	}
	for i := range groups {
		g := &groups[i]
		leave(g.addr)
		inside := len(open) > 0
		s := span{end: g.addr + g.size, owner: g.first, label: g.label}
		if g.size == 0 {
			s.end = g.stop
		}
		if inside && (g.size == 0 || g.label) && !open[len(open)-1].label || s.end <= g.addr {
			continue
		}
		open = append(open, s)
		give(g.addr, g.first)
	}
	leave(math.MaxUint64)
}

// span is the addresses up to end.
type span struct {
	end   uint64
	owner int32
	label bool
}

// groups returns the entries grouped by address, and where each group stops if it has no
// size.
func (b *builder) groups() []group {
	entries := b.entries
	groups := make([]group, 0, len(entries))
	for i := 0; i < len(entries); {
		g := group{first: int32(i), addr: entries[i].addr, size: uint64(entries[i].size), label: entries[i].flags&flagNoType != 0}
		g.inner = g.label
		for ; i < len(entries) && entries[i].addr == g.addr; i++ {
			g.inner = g.inner && entries[i].flags&flagLocal != 0
		}
		groups = append(groups, g)
	}
	next, nextFunc := uint64(math.MaxUint64), uint64(math.MaxUint64)
	for i := len(groups) - 1; i >= 0; i-- {
		g := &groups[i]
		g.stop = nextFunc
		if g.label {
			g.stop = next
		}
		if e, ok := within(b.code, g.addr); ok {
			g.stop = min(g.stop, e.end)
		} else if e, ok := within(b.segments, g.addr); ok {
			g.stop = min(g.stop, e.end)
		}
		next = g.addr
		if !g.inner {
			nextFunc = g.addr
		}
	}
	return groups
}

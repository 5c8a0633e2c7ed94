package lines

import "math"

// extent is the addresses [start, end).
type extent struct{ start, end uint64 }

// segments is the addresses of a file's code.
type segments []extent

// has reports whether an address is in a segment of code. Code that the linker discarded
// has addresses outside of those, or address 0.
func (s segments) has(addr uint64) bool {
	if addr == 0 {
		return false
	}
	for i := range s {
		if c := &s[i]; addr >= c.start && addr < c.end {
			return true
		}
	}
	return false
}

// Range list entries of version 5 (DW_RLE_*).
const (
	rangeEnd         = 0
	rangeBaseIndex   = 1
	rangeStartEndx   = 2
	rangeStartxLen   = 3
	rangeOffsets     = 4
	rangeBaseAddress = 5
	rangeStartEnd    = 6
	rangeStartLength = 7
)

// rangeReader reads the addresses of entries of a unit.
type rangeReader struct {
	t    *Table
	u    *unit
	list []extent // without code that the linker discarded
}

// entry adds the addresses of an entry.
func (r *rangeReader) entry(e *entry) {
	if e.ranges.kind != kindOther {
		r.ranges(e.ranges)
		return
	}
	low, ok := r.t.info.address(r.u, e.low)
	if !ok {
		return
	}
	high, ok := r.t.info.address(r.u, e.high)
	if !ok && e.high.kind == kindConst {
		high, ok = low+e.high.n, true
	}
	if ok {
		r.add(low, high)
	}
}

func (r *rangeReader) add(start, end uint64) {
	if start < end && r.t.code.has(start) {
		r.list = append(r.list, extent{start, end})
	}
}

// ranges adds the ranges of a list.
func (r *rangeReader) ranges(v value) {
	u := r.u
	if u.version < 5 {
		if v.kind != kindOffset && v.kind != kindConst {
			return
		}
		if v.n > MaxSize {
			return
		}
		r.oldList(min(u.rangesBase, MaxSize) + v.n)
		return
	}
	at := v.n
	if v.kind == kindListIndex {
		if at > MaxSize {
			return
		}
		c := r.t.info.cursor(r.t.info.rangeLists, min(u.rangesBase, MaxSize)+at*uint64(u.offset()))
		if at = u.rangesBase + c.uint(u.offset()); c.short {
			return
		}
	}
	r.newList(at)
}

// more reports whether another range may be read.
func (r *rangeReader) more() bool { return len(r.list) < maxRanges && r.t.work(1) }

// oldList reads a list of .debug_ranges: pairs of addresses relative to a base. A pair that
// starts with the highest address sets the base. A pair of zeros ends the list.
func (r *rangeReader) oldList(at uint64) {
	c := r.t.info.cursor(r.t.info.ranges, at)
	base, size := r.u.low, int(r.u.addr)
	highest := uint64(math.MaxUint64) >> (64 - 8*size)
	for r.more() {
		start, end := c.uint(size), c.uint(size)
		switch {
		case c.short || start == 0 && end == 0:
			return
		case start == highest:
			base = end
		default:
			r.add(base+start, base+end)
		}
	}
}

// newList reads a list of .debug_rnglists.
func (r *rangeReader) newList(at uint64) {
	c := r.t.info.cursor(r.t.info.rangeLists, at)
	base, size := r.u.low, int(r.u.addr)
	indexed := func() uint64 {
		addr, _ := r.t.info.address(r.u, value{kind: kindAddrIndex, n: c.uleb()})
		return addr
	}
	for r.more() {
		var start, end uint64
		switch c.u8() {
		case rangeBaseIndex:
			base = indexed()
			continue
		case rangeBaseAddress:
			base = c.uint(size)
			continue
		case rangeStartEndx:
			start, end = indexed(), indexed()
		case rangeStartxLen:
			start = indexed()
			end = start + c.uleb()
		case rangeOffsets:
			start, end = base+c.uleb(), base+c.uleb()
		case rangeStartEnd:
			start, end = c.uint(size), c.uint(size)
		case rangeStartLength:
			start = c.uint(size)
			end = start + c.uleb()
		default: // rangeEnd, or an unknown kind
			return
		}
		if c.short {
			return
		}
		r.add(start, end)
	}
}

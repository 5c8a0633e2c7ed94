package lines

import "math"

// extent is the addresses [start, end).
type extent struct{ start, end uint64 }

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

// appendRanges appends the addresses of an entry, except those of code that the linker
// discarded.
func (t *Table) appendRanges(dst []extent, u *unit, e *entry) []extent {
	if e.ranges.kind != kindOther {
		return t.appendList(dst, u, e.ranges)
	}
	low, ok := t.address(u, e.low)
	if !ok {
		return dst
	}
	high, ok := t.address(u, e.high)
	if !ok && e.high.kind == kindConst {
		high, ok = low+e.high.n, true
	}
	if !ok {
		return dst
	}
	return t.appendRange(dst, low, high)
}

func (t *Table) appendRange(dst []extent, start, end uint64) []extent {
	if start >= end || !t.isCode(start) {
		return dst
	}
	return append(dst, extent{start, end})
}

// isCode reports whether an address is in a segment of code. Code that the linker discarded
// has addresses outside of those, or address 0.
func (t *Table) isCode(addr uint64) bool {
	if addr == 0 {
		return false
	}
	for i := range t.code {
		if c := &t.code[i]; addr >= c.start && addr < c.end {
			return true
		}
	}
	return false
}

// appendList appends the ranges of a list.
func (t *Table) appendList(dst []extent, u *unit, v value) []extent {
	if u.version < 5 {
		if v.kind != kindOffset && v.kind != kindConst {
			return dst
		}
		if v.n > MaxSize {
			return dst
		}
		return t.appendOldList(dst, u, min(u.rangesBase, MaxSize)+v.n)
	}
	at := v.n
	if v.kind == kindListIndex {
		if at > MaxSize {
			return dst
		}
		c := t.info.cursor(t.info.rangeLists, min(u.rangesBase, MaxSize)+at*uint64(u.offset()))
		if at = u.rangesBase + c.uint(u.offset()); c.short {
			return dst
		}
	}
	return t.appendNewList(dst, u, at)
}

// appendOldList reads a list of .debug_ranges: pairs of addresses relative to a base. A
// pair that starts with the highest address sets the base. A pair of zeros ends the list.
func (t *Table) appendOldList(dst []extent, u *unit, at uint64) []extent {
	c := t.info.cursor(t.info.ranges, at)
	base, size := u.low, int(u.addr)
	highest := uint64(math.MaxUint64) >> (64 - 8*size)
	for len(dst) < maxRanges && t.work(1) {
		start, end := c.uint(size), c.uint(size)
		switch {
		case c.short || start == 0 && end == 0:
			return dst
		case start == highest:
			base = end
		default:
			dst = t.appendRange(dst, base+start, base+end)
		}
	}
	return dst
}

// appendNewList reads a list of .debug_rnglists.
func (t *Table) appendNewList(dst []extent, u *unit, at uint64) []extent {
	c := t.info.cursor(t.info.rangeLists, at)
	base, size := u.low, int(u.addr)
	indexed := func() uint64 {
		addr, _ := t.address(u, value{kind: kindAddrIndex, n: c.uleb()})
		return addr
	}
	for len(dst) < maxRanges && t.work(1) {
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
			return dst
		}
		if c.short {
			return dst
		}
		dst = t.appendRange(dst, start, end)
	}
	return dst
}

package lines

import (
	"cmp"
	"debug/dwarf"
	"slices"

	"rtrace-bpf/trace"
)

// maxUnits is the most units of a file that are used. The largest programs have some fifty
// thousand.
const maxUnits = 1 << 18

// Unit types of version 5 (DW_UT_*).
const (
	unitCompile  = 1
	unitPartial  = 3
	unitSkeleton = 4
	unitSplit    = 5
)

// unit is a contribution to .debug_info: the result of one compilation, or what several
// have in common.
type unit struct {
	width
	start, first, end uint32 // offsets of the header, of the first entry, and of the next unit
	abbrev            uint64 // offset of its table in .debug_abbrev

	low                            uint64 // the base of its ranges
	lines                          uint64 // offset of its program in .debug_line
	strBase, addrBase, rangesBase  uint64
	dir                            []byte // where the compiler ran
	hasLines, hasRanges, decorated bool   // decorated: names of functions differ from those of symbols

	// For split units: the part in the program, and the part in the other file.
	dwo         value  // name of the other file
	id          uint64 // common to both parts
	hasDwo      bool
	splitRanges uint64 // offset of the split part's lists of ranges (before version 5)
	split       *split // the split part, if it is loaded

	data *unitData // nil if it is not loaded
	used uint64    // when it was last used
}

// readUnits reads the headers of all units that may have code.
func (t *Table) readUnits() {
	c := t.info.cursor(t.info.info, 0)
	for c.left() > 0 {
		start := c.at
		n, wide := c.length()
		if c.short || n > uint64(c.left()) {
			t.problem(fail("debug_info", start, trace.ErrTruncated, "unit"))
			return
		}
		if len(t.units) >= maxUnits {
			t.problem(fail("debug_info", start, trace.ErrLimit, "count of units"))
			return
		}
		end := c.at + int(n)
		part := c
		part.data = c.data[:end]
		u := unit{start: uint32(start), end: uint32(end), width: width{wide: wide}}
		if ok := part.unit(&u); ok {
			t.units = append(t.units, u)
		}
		c.at = end
	}
}

// unit reads the rest of a header and reports whether the unit is useful.
func (c *cursor) unit(u *unit) bool {
	u.version = uint16(c.uint(2))
	typ := uint8(unitCompile)
	switch {
	case u.version == 5:
		typ = c.u8()
		u.addr = c.u8()
		u.abbrev = c.uint(u.offset())
		if typ == unitSkeleton || typ == unitSplit {
			u.id = c.uint(8)
		}
	case u.version >= 2 && u.version < 5:
		u.abbrev = c.uint(u.offset())
		u.addr = c.u8()
	default:
		return false
	}
	u.first = uint32(c.at)
	return !c.short && (u.addr == 4 || u.addr == 8) && (typ == unitCompile || typ == unitPartial || typ == unitSkeleton || typ == unitSplit)
}

// unitOf returns the unit that contains an entry, or nil.
func (t *Table) unitOf(entry uint64) *unit {
	i, found := slices.BinarySearchFunc(t.units, entry, func(u unit, at uint64) int { return cmp.Compare(uint64(u.first), at) })
	if !found {
		i--
	}
	if i < 0 || entry >= uint64(t.units[i].end) {
		return nil
	}
	return &t.units[i]
}

// entry returns a cursor after the code of an entry of u, and the entry's abbreviation,
// which is nil if there is none.
func (t *Table) entry(u *unit, at uint64) (cursor, *abbreviation) {
	c := t.info.cursor(t.info.info[:u.end], at)
	return c, t.abbreviations.of(t.info, u).find(c.uleb())
}

// languages are those whose compilers decorate the names of functions but do not always
// record the result (DW_LANG_*): C++ and C++ 03 to 17, Objective C++, D, Rust, Swift.
var languages = [...]uint64{0x04, 0x1a, 0x21, 0x2b, 0x3a, 0x11, 0x13, 0x1c, 0x1e}

// readRoot reads the first entry of a unit and appends its ranges to dst.
func (t *Table) readRoot(u *unit, dst []extent) []extent {
	c, a := t.entry(u, uint64(u.first))
	if a == nil || a.tag != dwarf.TagCompileUnit && a.tag != dwarf.TagPartialUnit && a.tag != dwarf.TagSkeletonUnit {
		return dst
	}
	u.strBase, u.addrBase, u.rangesBase = bases(u.width)
	var e entry
	var dir value
	for _, attr := range a.attrs {
		v := c.take(attr, u.width, uint64(u.start))
		switch attr.name {
		case dwarf.AttrCompDir:
			dir = v
		case dwarf.AttrStmtList:
			u.lines, u.hasLines = v.n, v.kind == kindOffset || v.kind == kindConst
		case dwarf.AttrLanguage:
			u.decorated = v.kind == kindConst && slices.Contains(languages[:], v.n)
		case dwarf.AttrStrOffsetsBase:
			u.strBase = v.n
		case dwarf.AttrAddrBase, attrGNUAddrBase:
			u.addrBase = v.n
		case dwarf.AttrRnglistsBase:
			u.rangesBase = v.n
		case dwarf.AttrDwoName, attrGNUDwoName:
			u.dwo, u.hasDwo = v, true
		case attrGNUDwoID:
			u.id = v.n
		case attrGNURangesBase:
			u.splitRanges = v.n
		default:
			e.set(attr.name, v)
		}
	}
	if c.short {
		u.hasLines = false
		return dst
	}
	u.dir = t.info.text(u, dir)
	u.low, _ = t.info.address(u, e.low)
	r := rangeReader{t: t, u: u, list: dst}
	r.entry(&e)
	u.hasRanges = len(r.list) > len(dst)
	return r.list
}

// bases returns the offsets of lists in units that do not give them: right after the
// header.
func bases(w width) (str, addr, ranges uint64) {
	switch {
	case w.version < 5:
		return 0, 0, 0
	case w.wide:
		return 16, 16, 20
	}
	return 8, 8, 12
}

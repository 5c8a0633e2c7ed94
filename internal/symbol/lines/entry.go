package lines

import (
	"debug/dwarf"
	"math"
)

// entry is what is of interest of an entry of .debug_info: a unit, a function,
// or a call of one that was inlined.
type entry struct {
	low, high, ranges  value
	origin             value // where more is said: DW_AT_abstract_origin, DW_AT_specification
	linkage, name      value
	callFile, callLine value
}

// set takes over an attribute.
func (e *entry) set(name dwarf.Attr, v value) {
	switch name {
	case dwarf.AttrLowpc:
		e.low = v
	case dwarf.AttrHighpc:
		e.high = v
	case dwarf.AttrRanges:
		e.ranges = v
	case dwarf.AttrAbstractOrigin, dwarf.AttrSpecification:
		e.origin = v
	case dwarf.AttrLinkageName, attrMIPSLinkageName:
		e.linkage = v
	case dwarf.AttrName:
		e.name = v
	case dwarf.AttrCallFile:
		e.callFile = v
	case dwarf.AttrCallLine:
		e.callLine = v
	}
}

// read takes all attributes of an entry.
func (e *entry) read(c *cursor, a *abbreviation, u *unit) {
	*e = entry{}
	for _, attr := range a.attrs {
		e.set(attr.name, c.take(attr, u.width, uint64(u.start)))
	}
}

// number returns a number of a file or a line, 0 if it is none.
func (v value) number() uint32 {
	if v.kind != kindConst || v.n > math.MaxInt32 {
		return 0
	}
	return uint32(v.n)
}

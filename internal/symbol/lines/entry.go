package lines

import (
	"debug/dwarf"
	"math"
)

// entry holds the attributes that are used of an entry of .debug_info: a unit, a function,
// or an inlined call.
type entry struct {
	low, high, ranges  value
	origin             value // the entry with further attributes: DW_AT_abstract_origin, DW_AT_specification
	linkage, name      value
	callFile, callLine value
}

// set stores an attribute.
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

// read reads all attributes of an entry.
func (e *entry) read(c *cursor, a *abbreviation, u *unit) {
	*e = entry{}
	for _, attr := range a.attrs {
		e.set(attr.name, c.take(attr, u.width, uint64(u.start)))
	}
}

// number returns the number of a file or a line, or 0 if v is not a number.
func (v value) number() uint32 {
	if v.kind != kindConst || v.n > math.MaxInt32 {
		return 0
	}
	return uint32(v.n)
}

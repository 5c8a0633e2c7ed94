package lines

// pack is a .dwp file: the parts of many units, and an index by their IDs (DWARF 5, 7.3.5).
// GNU's older format differs only in the version and the numbers of sections.
type pack struct {
	index    []byte
	sections [][]byte

	rows    map[uint64]uint32 // row by unit ID, from 1
	columns [splitSections]int
	offsets cursor // at the first row of offsets
	width   int    // columns of the tables
	count   int    // rows of the tables
}

// maxColumns is the most sections that an index may have.
const maxColumns = 16

// read reads the index. It has a header (columns, units and slots of a hash table), the
// keys and rows of the hash table, the section number of each column, and for each row the
// offset and size of the unit's bytes in each section. A malformed index is ignored.
func (p *pack) read(i *Info) {
	c := i.cursor(p.index, 0)
	version := c.uint(4)
	if version != 2 { // version 5 has 16 bits, and padding
		c = i.cursor(p.index, 0)
		version = c.uint(2)
		c.skip(2)
	}
	columns, units, slots := c.uint(4), c.uint(4), c.uint(4)
	const slot, field = 12, 4
	if c.short || version != 2 && version != 5 || columns == 0 || columns > maxColumns || slots > uint64(c.left())/slot ||
		units > (uint64(c.left())-slots*slot)/(2*field*columns) {
		return
	}
	ids, rows := c, c
	rows.skip(slots * 8)
	c.skip(slots * slot)
	for k := range p.columns {
		p.columns[k] = none
	}
	for k := range int(columns) {
		if s, ok := columnOf(version, c.uint(field)); ok {
			p.columns[s] = k
		}
	}
	if c.short {
		return
	}
	p.width, p.count, p.offsets = int(columns), int(units), c
	p.rows = make(map[uint64]uint32, units)
	for range slots {
		if id, row := ids.uint(8), rows.uint(field); row > 0 && row <= units {
			p.rows[id] = uint32(row)
		}
	}
}

// columnOf returns which of our sections has the given number (DW_SECT_*).
func columnOf(version, number uint64) (section int, ok bool) {
	switch {
	case number == 1:
		return splitInfo, true
	case number == 3:
		return splitAbbrev, true
	case number == 6:
		return splitStrOffsets, true
	case number == 8 && version == 5:
		return splitRangeLists, true
	}
	return 0, false
}

// find returns the sections of the unit with the given ID, or nil. p may be nil.
func (p *pack) find(id uint64) [][]byte {
	if p == nil || p.rows[id] == 0 {
		return nil
	}
	const field = 4
	row := int(p.rows[id]) - 1
	all := make([][]byte, splitSections)
	for s := range all {
		whole := p.sections[s]
		if s == splitStr { // shared by all units
			all[s] = whole
			continue
		}
		if p.columns[s] < 0 {
			continue
		}
		at := p.offsets
		at.skip(uint64(field * (row*p.width + p.columns[s])))
		size := p.offsets
		size.skip(uint64(field * ((p.count+row)*p.width + p.columns[s])))
		from, n := at.uint(field), size.uint(field)
		if at.short || size.short || from > uint64(len(whole)) || n > uint64(len(whole))-from {
			return nil
		}
		all[s] = whole[from : from+n]
	}
	return all
}

// size returns how many bytes of memory the pack occupies.
func (p *pack) size() int {
	const row = 32
	n := len(p.index) + len(p.rows)*row
	for _, s := range p.sections {
		n += len(s)
	}
	return n
}

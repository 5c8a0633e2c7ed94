package lines

import (
	"rtrace-bpf/internal/symbol"
)

// maxSplit is the most bytes that are read from one .dwo file.
const maxSplit = maxLoaded

// The sections of the split part of a unit. They are in a .dwo file, or in a .dwp file for
// many units, whose index gives the unit's bytes in each section.
const (
	splitInfo = iota
	splitAbbrev
	splitStr
	splitStrOffsets
	splitRangeLists
	splitSections
)

var splitNames = [splitSections]string{
	".debug_info.dwo", ".debug_abbrev.dwo", ".debug_str.dwo", ".debug_str_offsets.dwo", ".debug_rnglists.dwo",
}

// split is the part of a unit that is in another file.
type split struct {
	table *Table
	unit  *unit
	own   bool // its bytes come from a .dwo file of its own
}

// size returns the bytes of memory that are freed when s is dropped.
func (s *split) size() int {
	if s == nil || !s.own {
		return 0
	}
	// Addresses and old lists of ranges belong to the other part.
	i := s.table.info
	return len(i.info) + len(i.abbrev) + len(i.str) + len(i.strOffsets) + len(i.rangeLists)
}

// use stores what was read of the unit.
func (s *split) use(d *unitData) {
	if s != nil {
		s.unit.data = d
	}
}

// readAllFunctions is readFunctions for the part of the unit that has the functions.
func (t *Table) readAllFunctions(u *unit) (functions, error) {
	if u.hasDwo {
		u.split = t.openSplit(u)
	}
	if u.split == nil {
		return readFunctions(t, u)
	}
	u.split.table.budget = t.budget
	f, err := readFunctions(u.split.table, u.split.unit)
	t.budget = u.split.table.budget
	u.decorated = u.split.unit.decorated
	return f, err
}

// nameIn returns the name of the function of an entry of a unit or of its split part; see
// name.
func (t *Table) nameIn(u *unit, entry uint32) functionName {
	if u.split != nil {
		return u.split.table.name(entry)
	}
	return t.name(entry)
}

// openSplit returns the split part of a unit, or nil if no file has one with the unit's ID.
func (t *Table) openSplit(u *unit) *split {
	if all := t.info.pack.find(u.id); all != nil {
		if s := t.splitOf(u, all); s != nil {
			return s
		}
	}
	if t.info.file == nil {
		return nil
	}
	name := string(t.info.text(u, u.dwo))
	if name == "" || len(name) > maxPath || len(u.dir) > maxPath {
		return nil
	}
	if name[0] != '/' && len(u.dir) > 0 {
		name = string(u.dir) + "/" + name
	}
	var found *split
	t.info.file.SplitSections(maxSplit, name, func(all [][]byte) bool {
		found = t.splitOf(u, all)
		return found != nil
	}, splitNames[:]...)
	if found != nil {
		found.own = true
	}
	return found
}

// splitOf returns the split part of a unit from the given sections, or nil if they hold
// another one.
func (t *Table) splitOf(u *unit, all [][]byte) *split {
	info := &Info{
		order: t.info.order, info: all[splitInfo], abbrev: all[splitAbbrev], str: all[splitStr],
		strOffsets: all[splitStrOffsets], rangeLists: all[splitRangeLists],
		addr: t.info.addr, ranges: t.info.ranges,
	}
	s := &split{table: &Table{info: info, code: t.code, symbol: t.symbol}}
	s.table.readUnits()
	s.table.budget = maxUnitWork
	for i := range min(len(s.table.units), maxTries) {
		part := &s.table.units[i]
		if part.version != u.version || !s.table.work(s.table.abbreviations.of(info, part).attrs+1) {
			continue
		}
		if s.table.readRoot(part, nil); part.id != u.id {
			continue
		}
		part.low, part.addrBase, s.unit = u.low, u.addrBase, part
		if part.version < 5 {
			part.rangesBase = u.splitRanges
		}
		return s
	}
	return nil
}

// readPack reads the .dwp file, if there is one.
func (i *Info) readPack(f *symbol.File, limit uint64) {
	all := f.PackageSections(limit, append([]string{".debug_cu_index"}, splitNames[:]...)...)
	if all == nil {
		return
	}
	i.pack = &pack{index: all[0], sections: all[1:]}
	i.pack.read(i)
}

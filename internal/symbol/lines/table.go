package lines

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/trace"
)

// Limits of a table.
const (
	maxRanges    = 1 << 22   // of all units
	maxIndexWork = 1 << 28   // attributes and ranges that are read for the index
	maxUnitWork  = 1 << 30   // the same for one unit
	maxLoaded    = 256 << 20 // bytes of units that are kept
	maxFrames    = 1 << 8    // for one address
	maxTries     = 64        // ranges of units that are tried for one address
)

// Frame is a function that is active at an address.
type Frame struct {
	// Function is the name that the linker knows (in C++ the mangled name), if the
	// debugging information or a symbol has it, else the name in the source. It is empty if
	// neither exists.
	Function string
	// Namespace is the outermost namespace of a function whose Function is the name in the
	// source. It is empty if there is none or it is unknown.
	Namespace string
	File      string // with its folder, as the compiler got it; empty if unknown
	Line      int    // counted from 1; 0 if unknown
	Inlined   bool   // into the function of the next frame
}

// Table finds the functions and lines that the code of one file comes from. It is not safe
// for concurrent use.
type Table struct {
	info   *Info
	code   segments
	symbol func(addr uint64) string // returns the name of the symbol there, or ""
	units  []unit                   // in the order of .debug_info
	index  unitIndex
	err    error // the first problem

	abbreviations abbreviationTables
	names         names
	loaded        loadedUnits
	budget        int
	alternate     *Table // of Info.alternate, once it was needed

	isAlternate bool // it is the alternate of another table
}

// unitIndex finds the units with code at an address.
type unitIndex struct {
	ranges []unitRange // by address
	reach  []uint64    // reach[i] is the highest end of ranges[:i+1]
}

// arrange completes the index after the ranges were added.
func (x *unitIndex) arrange() {
	slices.SortStableFunc(x.ranges, func(a, b unitRange) int { return cmp.Compare(a.start, b.start) })
	x.reach = make([]uint64, len(x.ranges))
	highest := uint64(0)
	for i := range x.ranges {
		highest = max(highest, x.ranges[i].end)
		x.reach[i] = highest
	}
}

// unitRange is a range of addresses that belongs to a unit.
type unitRange struct {
	extent
	unit int32
}

// New builds the index of a file's debugging information. The file may be closed, but its
// symbols should be loaded.
func New(info *Info, f *symbol.File) *Table {
	var code []extent
	for _, s := range f.Segments() {
		code = append(code, extent{s.Addr, s.Addr + s.MemSize})
	}
	return newTable(info, code, func(addr uint64) string {
		s, _ := f.Lookup(addr)
		return s.Name
	})
}

func newTable(info *Info, code []extent, symbol func(addr uint64) string) *Table {
	t := &Table{info: info, code: code, symbol: symbol}
	t.build()
	return t
}

// Size returns how many bytes of memory the table always occupies, including its Info.
func (t *Table) Size() uint64 {
	const unitBytes, rangeBytes = 192, 32
	return t.info.Size() + uint64(len(t.units))*unitBytes + uint64(len(t.index.ranges))*rangeBytes
}

// Loaded returns how many bytes the units read so far occupy, some hundred MiB at most.
// Forget frees them.
func (t *Table) Loaded() int {
	n := t.loaded.bytes + t.names.bytes
	if t.alternate != nil {
		n += t.alternate.Loaded()
	}
	return n
}

// Forget frees the units that were read. They are read again when they are needed.
func (t *Table) Forget() {
	t.loaded.clear()
	if t.alternate != nil {
		t.alternate.Forget()
	}
	t.names, t.abbreviations = names{}, nil
}

// Err returns the first problem with the debugging information, a *trace.SyntaxError, or
// nil. Lookups that the problem does not affect still work.
func (t *Table) Err() error { return t.err }

func (t *Table) problem(err error) {
	if t.err == nil {
		t.err = err
	}
}

// work subtracts n from the budget and reports whether the budget is used up.
func (t *Table) work(n int) bool {
	t.budget -= n
	return t.budget >= 0
}

// build builds the index.
func (t *Table) build() {
	t.readUnits()
	t.budget = maxIndexWork
	var ranges []extent
	for i := range t.units {
		u := &t.units[i]
		a := t.abbreviations.of(t.info, u)
		if a.err != nil {
			t.problem(a.err)
		}
		if !t.work(a.attrs+1) || len(t.index.ranges) > maxRanges {
			t.problem(fail("debug_info", int(u.start), trace.ErrLimit, "index of units"))
			break
		}
		ranges = t.readRoot(u, ranges[:0])
		if !u.hasRanges || u.version == 2 { // version 2 has no lists of ranges
			ranges = t.covered(u, ranges)
		}
		for _, r := range ranges {
			t.index.ranges = append(t.index.ranges, unitRange{r, int32(i)})
		}
	}
	t.index.arrange()
}

// covered appends the ranges for which a unit has lines.
func (t *Table) covered(u *unit, dst []extent) []extent {
	l, err := readLines(t, u)
	if err != nil {
		t.problem(err)
	}
	for i := range l.sequences {
		dst = append(dst, l.sequences[i].extent)
	}
	return dst
}

// AppendFrames appends the functions that are active at an address of the file, the
// innermost first: the inlined calls, and last the function that the code belongs to. It
// appends nothing if the debugging information does not cover the address.
func (t *Table) AppendFrames(dst []Frame, addr uint64) []Frame {
	var lines *unitData
	x := &t.index
	i := before(x.ranges, addr, func(r *unitRange) uint64 { return r.start })
	for tries := 0; i >= 0 && x.reach[i] > addr && tries < maxTries; i, tries = i-1, tries+1 {
		r := &x.ranges[i]
		if addr >= r.end {
			continue
		}
		data := t.load(&t.units[r.unit])
		if node := data.functions.find(addr); node >= 0 {
			return t.appendChain(dst, &t.units[r.unit], node, addr)
		}
		if _, ok := data.lines.find(addr); ok && lines == nil {
			lines = data
		}
	}
	if lines == nil {
		return dst
	}
	at, _ := lines.lines.find(addr)
	return append(dst, Frame{Function: t.symbol(addr), File: lines.lines.path(at.file), Line: int(at.line)})
}

// appendChain appends the frames of a node and of what it is inlined into.
func (t *Table) appendChain(dst []Frame, u *unit, i int32, addr uint64) []Frame {
	data := u.data
	at, _ := data.lines.find(addr)
	file, line := at.file, at.line
	for range maxFrames {
		if i < 0 {
			break
		}
		n := &data.functions.nodes[i]
		name := t.nameIn(u, n.entry)
		f := Frame{Function: name.text, Namespace: name.space, Line: int(line), Inlined: n.inlined}
		f.File = data.lines.path(file)
		if !n.inlined && !name.linkage {
			if s := t.symbol(addr); name.text == "" || u.decorated && decorated(s) {
				f.Function, f.Namespace = s, ""
			}
		}
		dst = append(dst, f)
		file, line, i = n.file, n.line, n.parent
		if !n.inlined {
			break
		}
	}
	return dst
}

// decorated reports whether a symbol has a name that a compiler made from more than the
// name in the source.
func decorated(name string) bool {
	return len(name) > 2 && name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D' || name[1] == '$')
}

// load returns the contents of a unit. It drops other units if they occupy too much memory.
func (t *Table) load(u *unit) *unitData {
	t.loaded.use(u)
	if u.data != nil {
		return u.data
	}
	t.budget = maxUnitWork
	d := new(unitData)
	var err error
	if d.functions, err = t.readAllFunctions(u); err != nil {
		t.problem(err)
	}
	if d.lines, err = readLines(t, u); err != nil {
		t.problem(err)
	}
	const nodeBytes, ownerBytes, rowBytes, sequenceBytes, fileBytes, unitBytes = 20, 12, 16, 40, 32, 512
	d.bytes = unitBytes + len(d.functions.nodes)*nodeBytes + len(d.functions.starts)*ownerBytes + d.lines.rows*rowBytes +
		len(d.lines.sequences)*sequenceBytes + len(d.lines.list)*fileBytes + u.split.size()
	t.loaded.add(u, d)
	return d
}

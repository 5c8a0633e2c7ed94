package lines

import (
	"cmp"
	"math"
	"slices"

	"rtrace-bpf/trace"
)

// maxRows is the most rows of a line table that are kept for one unit.
const maxRows = 1 << 22

// Instructions of line programs (DW_LNS_*, DW_LNE_*).
const (
	lineExtended     = 0
	lineCopy         = 1
	lineAdvancePC    = 2
	lineAdvanceLine  = 3
	lineSetFile      = 4
	lineSetColumn    = 5
	lineNegate       = 6
	lineBlock        = 7
	lineConstAddPC   = 8
	lineFixedAdvance = 9

	lineEndSequence = 1
	lineSetAddress  = 2
	lineDefineFile  = 3
)

// row assigns the code from addr on to a line.
type row struct {
	addr       uint64
	file, line uint32
}

// sequence is the rows of contiguous code at [start, end).
type sequence struct {
	extent
	rows []row
}

// sourceLines is the line table of a unit.
type sourceLines struct {
	files
	sequences []sequence // by address, without overlaps
	rows      int
}

// find returns the last row at or before addr.
func (l *sourceLines) find(addr uint64) (row, bool) {
	i := before(l.sequences, addr, func(s *sequence) uint64 { return s.start })
	if i < 0 || addr >= l.sequences[i].end {
		return row{}, false
	}
	rows := l.sequences[i].rows
	k := before(rows, addr, func(r *row) uint64 { return r.addr })
	if k < 0 {
		return row{}, false
	}
	return rows[k], true
}

// before returns the index of the last element of a sorted list whose address is not above
// addr, or -1.
func before[T any](list []T, addr uint64, at func(*T) uint64) int {
	low, high := 0, len(list)
	for low < high {
		mid := int(uint(low+high) / 2)
		if at(&list[mid]) <= addr {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low - 1
}

// registers is the state of the machine that runs line programs.
type registers struct {
	addr, op   uint64
	file, line uint64
}

// readLines runs the line program of a unit.
func readLines(t *Table, u *unit) (sourceLines, error) {
	if !u.hasLines || len(t.info.line) == 0 {
		return sourceLines{}, nil
	}
	p, err := openProgram(t, u)
	if err != nil {
		return sourceLines{}, err
	}
	var l sourceLines
	err = p.run(&l)
	l.files = p.files
	l.arrange()
	return l, err
}

// run runs the program and collects its sequences, except those of code that the linker
// discarded.
func (p *program) run(l *sourceLines) error {
	c := &p.c
	m := registers{file: 1, line: 1}
	var rows []row
	emit := func() {
		rows = append(rows, row{addr: m.addr, file: narrow(m.file), line: narrow(m.line)})
		l.rows++
	}
	for c.left() > 0 {
		at := c.at
		op := c.u8()
		switch {
		case op >= p.opBase:
			special := uint64(op - p.opBase)
			p.advance(&m, special/p.lineRange)
			m.line += uint64(p.lineBase + int64(special%p.lineRange))
			emit()
		case op == lineExtended:
			if p.extended(&m) {
				if len(rows) > 0 && p.t.code.has(rows[0].addr) {
					l.sequences = append(l.sequences, sequence{extent{rows[0].addr, m.addr}, rows})
				}
				rows, m = nil, registers{file: 1, line: 1}
			}
		case op == lineCopy:
			emit()
		default:
			p.standard(op, &m)
		}
		if c.short {
			return fail("debug_line", at, trace.ErrMalformed, "line program")
		}
		if l.rows > maxRows {
			return fail("debug_line", at, trace.ErrLimit, "rows of a line program")
		}
	}
	return nil
}

// narrow returns the number of a file or a line, or 0 if it does not fit.
func narrow(n uint64) uint32 {
	if n > math.MaxInt32 {
		return 0
	}
	return uint32(n)
}

// advance advances the address by a number of operations. On some machines an instruction
// has several operations.
func (p *program) advance(m *registers, n uint64) {
	if p.maxOps == 1 {
		m.addr += p.minLength * n
		return
	}
	op := m.op + n
	m.addr += p.minLength * (op / p.maxOps)
	m.op = op % p.maxOps
}

// standard runs a standard instruction that adds no row.
func (p *program) standard(op uint8, m *registers) {
	c := &p.c
	switch op {
	case lineAdvancePC:
		p.advance(m, c.uleb())
	case lineAdvanceLine:
		m.line += uint64(c.sleb())
	case lineSetFile:
		m.file = c.uleb()
	case lineConstAddPC:
		p.advance(m, uint64(math.MaxUint8-p.opBase)/p.lineRange)
	case lineFixedAdvance:
		m.addr += c.uint(2)
		m.op = 0
	case lineNegate, lineBlock:
	case lineSetColumn:
		c.uleb()
	default:
		for range p.operands[op] {
			c.uleb()
		}
	}
}

// extended runs an extended instruction and reports whether it ends a sequence.
func (p *program) extended(m *registers) bool {
	c := &p.c
	n := c.uleb()
	if n == 0 || n > uint64(c.left()) {
		c.fail()
		return false
	}
	part := *c
	part.data = c.data[:c.at+int(n)]
	c.skip(n)
	switch part.u8() {
	case lineEndSequence:
		return true
	case lineSetAddress:
		if size := part.left(); size == 4 || size == 8 {
			m.addr, m.op = part.uint(size), 0
		} else {
			c.fail()
		}
	case lineDefineFile:
		if p.width.version < 5 {
			p.readOldFile(&part)
		}
	}
	return false
}

// arrange sorts the sequences and their rows, and removes what overlaps an earlier
// sequence.
func (l *sourceLines) arrange() {
	byStart := func(a, b sequence) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	}
	byAddr := func(a, b row) int { return cmp.Compare(a.addr, b.addr) }
	for i := range l.sequences {
		s := &l.sequences[i]
		if !slices.IsSortedFunc(s.rows, byAddr) {
			slices.SortStableFunc(s.rows, byAddr)
			s.start = s.rows[0].addr
		}
	}
	slices.SortStableFunc(l.sequences, byStart)
	kept, last := l.sequences[:0], uint64(0)
	for _, s := range l.sequences {
		s.start = max(s.start, last)
		if s.start >= s.end {
			continue
		}
		last = s.end
		kept = append(kept, s)
	}
	l.sequences = kept
}

package tracer

import (
	"slices"

	"rtrace-bpf/trace"
)

// reasonUnmapped is why a stack ends in code whose unwind table the programs
// did not have yet.
const reasonUnmapped = "unmapped"

// coverage knows, as events pass by in order, for which mappings the programs
// had unwind tables, and which of these have become wrong: between the moment
// when code is replaced and the one when its new table is installed, the
// programs unwind by the old one. Records about mappings are known by their
// numbers: the order in which they arrived.
type coverage struct {
	tables  bool // the programs use tables at all
	covered []mapping
	pending []mapping // may have been installed already; seen is the record's number
	stale   []staleCode
}

// staleCode is code that was replaced, as a record said.
type staleCode struct {
	extent
	since uint64
}

// everything is the code of a whole process.
var everything = extent{start: 0, end: ^uint64(0)}

// mapped says that m appeared, by the record of a number.
func (c *coverage) mapped(m mapping, number uint64) {
	if !c.tables {
		return
	}
	// What looks like the same file may be another one under its inode number.
	// Memory without a file has no table that could be wrong.
	replaces := func(old mapping) bool {
		return old.overlaps(m) && (m.inode != 0 || old.inode != 0)
	}
	if slices.ContainsFunc(c.covered, replaces) || slices.ContainsFunc(c.pending, replaces) {
		c.stale = append(c.stale, staleCode{extent{start: m.start, end: m.end}, number})
	}
	m.seen = number
	c.pending = append(c.pending, m)
}

// replaced says that the process replaced its program.
func (c *coverage) replaced(number uint64) {
	if c.tables {
		c.stale = append(c.stale, staleCode{everything, number})
	}
}

// installed says that the tables of all are in use. The records before number
// were known when the mappings were read.
func (c *coverage) installed(all []mapping, number uint64) {
	c.covered = all
	c.pending = slices.DeleteFunc(c.pending, func(m mapping) bool { return m.seen < number })
	c.stale = slices.DeleteFunc(c.stale, func(s staleCode) bool { return s.since < number })
}

// doubtful says that tables may be wrong.
func (c *coverage) doubtful() bool { return len(c.stale) > 0 }

// limit ends a stack at the first frame whose table may be wrong: that frame is
// right, what it led to need not be.
func (c *coverage) limit(s *trace.Stack) {
	for i, addr := range s.Frames {
		if slices.ContainsFunc(c.stale, func(x staleCode) bool { return addr >= x.start && addr < x.end }) {
			s.Frames = s.Frames[:i+1]
			s.End, s.Reason = trace.StackFailed, reasonUnmapped
			return
		}
	}
}

// trusts says whether a frame-pointer step from addr may be believed: code of a
// file whose table came too late may use the register for anything.
func (c *coverage) trusts(addr uint64, inFile bool) bool {
	return !c.tables || !inFile || slices.ContainsFunc(c.covered, func(m mapping) bool {
		return addr >= m.start && addr < m.end
	})
}

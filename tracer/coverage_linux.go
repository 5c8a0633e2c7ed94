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
// programs unwind by the old one.
type coverage struct {
	tables  bool // the programs use tables at all
	covered []mapping
	pending []mapping // may have been installed already, with seen the time they appeared
	stale   []staleCode
}

// staleCode is code that was replaced at a time.
type staleCode struct {
	extent
	since uint64
}

// everything is the code of a whole process.
var everything = extent{0, ^uint64(0)}

// mapped says that m appeared at time.
func (c *coverage) mapped(m mapping, time uint64) {
	if !c.tables {
		return
	}
	// What looks like the same file may be another one under its inode number.
	replaces := func(old mapping) bool {
		return old.overlaps(m) && (m.inode != 0 || !old.same(m))
	}
	if slices.ContainsFunc(c.covered, replaces) || slices.ContainsFunc(c.pending, replaces) {
		c.stale = append(c.stale, staleCode{extent{m.start, m.end}, time})
	}
	m.seen = time
	c.pending = append(c.pending, m)
}

// replaced says that the process replaced its program at time.
func (c *coverage) replaced(time uint64) {
	if c.tables {
		c.stale = append(c.stale, staleCode{everything, time})
	}
}

// installed says that the tables of all are in use, the mappings as they were
// at the time seen.
func (c *coverage) installed(all []mapping, seen uint64) {
	c.covered = all
	c.pending = slices.DeleteFunc(c.pending, func(m mapping) bool { return m.seen < seen })
	c.stale = slices.DeleteFunc(c.stale, func(s staleCode) bool { return s.since < seen })
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

package record

import (
	"slices"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/process"
)

// reasonUnmapped is why a stack ends in code whose unwind table the programs
// did not have yet.
const reasonUnmapped = "unmapped"

// Coverage knows, as events pass by in order, for which mappings the programs
// had unwind tables, and which of these have become wrong: between the moment
// when code is replaced and the one when its new table is installed, the
// programs unwind by the old one. Records about mappings are known by their
// numbers: the order in which they arrived.
type Coverage struct {
	tables  bool // the programs use tables at all
	covered []process.Mapping
	Pending []process.Mapping // may have been installed already; seen is the record's number
	Stale   []StaleCode
}

// StaleCode is code that was replaced, as a record said.
type StaleCode struct {
	process.Extent
	since uint64
}

// everything is the code of a whole process.
var everything = process.Extent{Start: 0, End: ^uint64(0)}

// mapped says that m appeared, by the record of a number.
func (c *Coverage) mapped(m process.Mapping, number uint64) {
	if !c.tables {
		return
	}
	// What looks like the same file may be another one under its inode number.
	// Memory without a file has no table that could be wrong.
	replaces := func(old process.Mapping) bool {
		return old.Overlaps(m) && (m.Inode != 0 || old.Inode != 0)
	}
	if slices.ContainsFunc(c.covered, replaces) || slices.ContainsFunc(c.Pending, replaces) {
		c.Stale = append(c.Stale, StaleCode{process.Extent{Start: m.Start, End: m.End}, number})
	}
	m.Seen = number
	c.Pending = append(c.Pending, m)
}

// replaced says that the process replaced its program.
func (c *Coverage) replaced(number uint64) {
	if c.tables {
		c.Stale = append(c.Stale, StaleCode{everything, number})
	}
}

// installed says that the tables of all are in use. The records before number
// were known when the mappings were read.
func (c *Coverage) installed(all []process.Mapping, number uint64) {
	c.covered = all
	c.Pending = slices.DeleteFunc(c.Pending, func(m process.Mapping) bool { return m.Seen < number })
	c.Stale = slices.DeleteFunc(c.Stale, func(s StaleCode) bool { return s.since < number })
}

// Doubtful says that tables may be wrong.
func (c *Coverage) Doubtful() bool { return len(c.Stale) > 0 }

// limit ends a stack at the first frame whose table may be wrong: that frame is
// right, what it led to need not be.
func (c *Coverage) limit(s *trace.Stack) {
	for i, addr := range s.Frames {
		if slices.ContainsFunc(c.Stale, func(x StaleCode) bool { return addr >= x.Start && addr < x.End }) {
			s.Frames = s.Frames[:i+1]
			s.End, s.Reason = trace.StackFailed, reasonUnmapped
			return
		}
	}
}

// Trusts says whether a frame-pointer step from addr may be believed: code of a
// file whose table came too late may use the register for anything.
func (c *Coverage) Trusts(addr uint64, inFile bool) bool {
	return !c.tables || !inFile || slices.ContainsFunc(c.covered, func(m process.Mapping) bool {
		return addr >= m.Start && addr < m.End
	})
}

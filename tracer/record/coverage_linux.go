package record

import (
	"slices"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/process"
)

// reasonUnmapped is the reason for a stack that ends in code whose unwind table the
// programs did not have yet.
const reasonUnmapped = "unmapped"

// Coverage knows for which mappings the programs had unwind tables, and which of these
// tables may be wrong, at the current place in the order of events. After code is
// replaced, the programs use its old table until the new one is installed. Coverage
// identifies records about mappings by their numbers, the order in which they arrived.
type Coverage struct {
	tables  bool // the programs use tables
	covered []process.Mapping
	Pending []process.Mapping // tables that may already be installed; Seen is the number of the record
	Stale   []StaleCode
}

// StaleCode is a range of code that was replaced, by the record with number since.
type StaleCode struct {
	process.Extent
	since uint64
}

// everything is the whole address space of a process.
var everything = process.Extent{Start: 0, End: ^uint64(0)}

// mapped notes that m appeared, with the number of its record.
func (c *Coverage) mapped(m process.Mapping, number uint64) {
	if !c.tables {
		return
	}
	// A mapping of the same inode number may be of another file. Memory without a file
	// has no table that could be wrong.
	replaces := func(old process.Mapping) bool {
		return old.Overlaps(m) && (m.Inode != 0 || old.Inode != 0)
	}
	if slices.ContainsFunc(c.covered, replaces) || slices.ContainsFunc(c.Pending, replaces) {
		c.Stale = append(c.Stale, StaleCode{process.Extent{Start: m.Start, End: m.End}, number})
	}
	m.Seen = number
	c.Pending = append(c.Pending, m)
}

// replaced notes that the process replaced its program, with the number of the record.
func (c *Coverage) replaced(number uint64) {
	if c.tables {
		c.Stale = append(c.Stale, StaleCode{everything, number})
	}
}

// installed notes that the tables of all are in use. The mappings were read after the
// records before number had arrived.
func (c *Coverage) installed(all []process.Mapping, number uint64) {
	c.covered = all
	c.Pending = slices.DeleteFunc(c.Pending, func(m process.Mapping) bool { return m.Seen < number })
	c.Stale = slices.DeleteFunc(c.Stale, func(s StaleCode) bool { return s.since < number })
}

// Doubtful reports whether some tables may be wrong.
func (c *Coverage) Doubtful() bool { return len(c.Stale) > 0 }

// limit ends a stack at the first frame whose table may be wrong. That frame itself is
// correct; its callers need not be.
func (c *Coverage) limit(s *trace.Stack) {
	for i, addr := range s.Frames {
		if slices.ContainsFunc(c.Stale, func(x StaleCode) bool { return addr >= x.Start && addr < x.End }) {
			s.Frames, s.ID = s.Frames[:i+1], 0
			s.End, s.Reason = trace.StackFailed, reasonUnmapped
			return
		}
	}
}

// Trusts reports whether a frame-pointer step from addr is reliable. Code of a file whose
// table came too late may use the register for anything.
func (c *Coverage) Trusts(addr uint64, inFile bool) bool {
	return !c.tables || !inFile || slices.ContainsFunc(c.covered, func(m process.Mapping) bool {
		return addr >= m.Start && addr < m.End
	})
}

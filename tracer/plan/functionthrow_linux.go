package plan

import (
	"rtrace-bpf/tracer/process"
)

// mayThrow reports whether the process can throw exceptions, or whether that is not known.
func (s *FunctionSearch) mayThrow() bool {
	if s.throws == 0 {
		s.throws = -1
		if s.hasUnwinder() {
			s.throws = 1
		}
	}
	return s.throws > 0
}

// hasUnwinder reports whether a file of the process defines the function that raises
// exceptions. It returns true if that cannot be known, as for a static program without
// symbols.
func (s *FunctionSearch) hasUnwinder() bool {
	maps, err := s.target.Mappings()
	if err != nil {
		return true
	}
	_, program := s.target.LinkOrder()
	seen := map[process.FileID]bool{}
	for _, m := range maps {
		if m.Inode == 0 || seen[m.ID()] {
			continue
		}
		seen[m.ID()] = true
		f, _, err := s.target.Open(m)
		if err != nil || f == nil {
			continue
		}
		_, has := f.Exported("_Unwind_RaiseException")
		if m.ID() == program && !has {
			_, has = f.Defined("_Unwind_RaiseException")
			has = has || f.Alone() && f.Functions() == 0
		}
		_ = f.Close() // it was only read
		if has {
			return true
		}
	}
	return false
}

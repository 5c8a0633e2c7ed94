package tracer

// mayThrow says whether the process has what exceptions take, or may have: then nothing
// is sure.
func (s *namedSearch) mayThrow() bool {
	if s.throws == 0 {
		s.throws = -1
		if s.hasUnwinder() {
			s.throws = 1
		}
	}
	return s.throws > 0
}

func (s *namedSearch) hasUnwinder() bool {
	maps, err := s.target.mappings()
	if err != nil {
		return true
	}
	_, program := s.target.linkOrder()
	seen := map[fileID]bool{}
	for _, m := range maps {
		if m.inode == 0 || seen[m.id()] {
			continue
		}
		seen[m.id()] = true
		f, _, err := s.target.open(m)
		if err != nil || f == nil {
			continue
		}
		_, has := f.Exported("_Unwind_RaiseException")
		if m.id() == program && !has {
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

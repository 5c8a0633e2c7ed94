package consumption

// life is what is kept of a live block beside its entry in the table.
type life struct {
	at, place int64
	context   uint32
	vacant    uint32 // of a place that is free: 1 + the next one
}

// lives keeps one life per live block under numbers that do not change.
type lives struct {
	all    []life
	vacant uint32 // 1 + the first vacant number
}

func (s *lives) add(l life) uint64 {
	if s.vacant == 0 {
		s.all = append(s.all, l)
		return uint64(len(s.all) - 1)
	}
	n := s.vacant - 1
	s.vacant = s.all[n].vacant
	s.all[n] = l
	return uint64(n)
}

// take returns a life and gives its place away.
func (s *lives) take(n uint64) life {
	l := s.all[n]
	s.all[n] = life{vacant: s.vacant}
	s.vacant = uint32(n) + 1
	return l
}

package live

// Values stores values under numbers that do not change, one for each live
// block, if they do not fit into Entry.Value; that then holds the number. The
// zero Values is empty.
type Values[T any] struct {
	all    []T
	vacant []uint32
}

// Add stores a value and returns its number.
func (s *Values[T]) Add(v T) uint64 {
	if last := len(s.vacant) - 1; last >= 0 {
		n := s.vacant[last]
		s.vacant = s.vacant[:last]
		s.all[n] = v
		return uint64(n)
	}
	s.all = append(s.all, v)
	return uint64(len(s.all) - 1)
}

// At returns the value with a number. It is valid until the next Add or Take.
func (s *Values[T]) At(n uint64) *T { return &s.all[n] }

// Take removes and returns the value with a number. The number may be reused.
func (s *Values[T]) Take(n uint64) T {
	var none T
	v := s.all[n]
	s.all[n] = none
	s.vacant = append(s.vacant, uint32(n))
	return v
}

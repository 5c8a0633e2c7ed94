package leak

import "math/rand/v2"

// wordSet is a set of nonzero numbers. The zero wordSet is empty.
type wordSet struct {
	slots
	odd1, odd2 uint64 // factors of the hash
}

// hash returns the form in which a number is stored. Different numbers have
// different hashes, because the steps are invertible: multiplication with odd
// factors, and a shift with xor.
func (s *wordSet) hash(v uint64) uint64 {
	v *= s.odd1
	return (v ^ v>>32) * s.odd2
}

// add adds a number if it is not in the set.
func (s *wordSet) add(v uint64) {
	if s.full() {
		if s.at == nil {
			s.odd1, s.odd2 = rand.Uint64()|1, rand.Uint64()|1
		}
		s.grow()
	}
	if at, ok := s.find(s.hash(v)); !ok {
		s.at[at] = s.hash(v)
		s.n++
	}
}

// find returns the slot of a hash, or the empty slot for it.
func (s *wordSet) find(h uint64) (at int, ok bool) {
	mask := len(s.at) - 1
	for i := s.home(h); ; i++ {
		switch s.at[i&mask] {
		case h:
			return i & mask, true
		case 0:
			return i & mask, false
		}
	}
}

// remove removes a number and reports whether it was in the set.
func (s *wordSet) remove(v uint64) bool {
	if s.n == 0 {
		return false
	}
	at, ok := s.find(s.hash(v))
	if ok {
		s.slots.remove(at)
	}
	return ok
}

package leak

import (
	"math/bits"
	"math/rand/v2"
)

// wordSet is a set of numbers other than 0: open addressing with linear probing,
// at most half full, eight to a cache line. Its hash is seeded at random, so that
// input made to collide does not. The zero wordSet is empty.
type wordSet struct {
	slots        []uint64
	n            int
	shift        uint // of a hash to a slot
	seed1, seed2 uint64
}

func (s *wordSet) home(v uint64) int {
	hi, lo := bits.Mul64(v^s.seed1, s.seed2)
	return int((hi ^ lo) >> (s.shift & 63))
}

// add adds a number, unless it is there.
func (s *wordSet) add(v uint64) {
	if 2*s.n >= len(s.slots) {
		s.resize(max(minSlots, 2*len(s.slots)))
	}
	mask := len(s.slots) - 1
	for i := s.home(v); ; i++ {
		switch at := &s.slots[i&mask]; *at {
		case v:
			return
		case 0:
			*at = v
			s.n++
			return
		}
	}
}

// find returns the slot of a number.
func (s *wordSet) find(v uint64) (at int, ok bool) {
	if s.n == 0 {
		return 0, false
	}
	mask := len(s.slots) - 1
	for i := s.home(v); ; i++ {
		switch s.slots[i&mask] {
		case v:
			return i & mask, true
		case 0:
			return 0, false
		}
	}
}

// remove takes out a number and says whether it was there. The gap is closed:
// what follows moves up unless it stands where it belongs or nearer to that than
// the gap.
func (s *wordSet) remove(v uint64) bool {
	gap, ok := s.find(v)
	if !ok {
		return false
	}
	slots := s.slots
	mask := len(slots) - 1
	for i := (gap + 1) & mask; slots[i] != 0; i = (i + 1) & mask {
		if home := s.home(slots[i]); (i-home)&mask >= (i-gap)&mask {
			slots[gap] = slots[i]
			gap = i
		}
	}
	slots[gap] = 0
	if s.n--; len(slots) > 4*minSlots && 8*s.n < len(slots) {
		s.resize(len(slots) / 2)
	}
	return true
}

// resize gives the set n slots, a power of two.
func (s *wordSet) resize(n int) {
	if s.slots == nil {
		s.seed1, s.seed2 = rand.Uint64(), rand.Uint64()|1
	}
	old := s.slots
	s.slots, s.shift = make([]uint64, n), uint(64-bits.TrailingZeros(uint(n)))
	mask := n - 1
	for _, v := range old {
		if v == 0 {
			continue
		}
		i := s.home(v)
		for s.slots[i&mask] != 0 {
			i++
		}
		s.slots[i&mask] = v
	}
}

package leak

import "math/bits"

// slots is a hash table of numbers other than 0: open addressing with linear
// probing, at most half full, eight numbers to a cache line. Where a number belongs
// is in its upper bits, which have to be those of a hash that is seeded at random,
// so that input made to collide does not. The zero slots is empty.
type slots struct {
	at    []uint64 // 0 is an empty one; the length is a power of two
	n     int
	shift uint // of a number to the slot where it belongs
}

const minSlots = 16

// home is the slot where a number belongs. It is right modulo the length.
func (s *slots) home(v uint64) int { return int(v >> (s.shift & 63)) }

// full says that there is no room for another number before the next grow.
func (s *slots) full() bool { return 2*s.n >= len(s.at) }

// grow doubles the slots.
func (s *slots) grow() { s.resize(max(minSlots, 2*len(s.at))) }

// put puts a number that is not there into the first empty slot where it may be.
func (s *slots) put(v uint64) {
	mask := len(s.at) - 1
	i := s.home(v)
	for s.at[i&mask] != 0 {
		i++
	}
	s.at[i&mask] = v
}

// remove takes out the number in a slot and closes the gap: what follows moves up
// unless it stands where it belongs or nearer to that than the gap.
func (s *slots) remove(gap int) {
	at := s.at
	mask := len(at) - 1
	for i := (gap + 1) & mask; at[i] != 0; i = (i + 1) & mask {
		if (i-s.home(at[i]))&mask >= (i-gap)&mask {
			at[gap] = at[i]
			gap = i
		}
	}
	at[gap] = 0
	if s.n--; len(at) > 4*minSlots && 8*s.n < len(at) {
		s.resize(len(at) / 2)
	}
}

// resize makes n slots.
func (s *slots) resize(n int) {
	old := s.at
	s.at, s.shift = make([]uint64, n), uint(64-bits.TrailingZeros(uint(n)))
	for _, v := range old {
		if v != 0 {
			s.put(v)
		}
	}
}

package leak

import "math/bits"

// slots is a hash table of nonzero numbers. It uses open addressing with linear
// probing and is at most half full, with eight numbers to a cache line. The
// upper bits of a number are its hash. They must come from a randomly seeded
// hash, so that crafted input cannot cause collisions. The zero slots is empty.
type slots struct {
	at    []uint64 // 0 is an empty slot; the length is a power of two
	n     int
	shift uint // right shift that turns a number into its home slot
}

const minSlots = 16

// home returns the slot where a number belongs, modulo the length.
func (s *slots) home(v uint64) int { return int(v >> (s.shift & 63)) }

// full reports whether the slots must grow before another number is added.
func (s *slots) full() bool { return 2*s.n >= len(s.at) }

// grow doubles the slots.
func (s *slots) grow() { s.resize(max(minSlots, 2*len(s.at))) }

// put stores a number that is not there yet in the first empty slot from its
// home on.
func (s *slots) put(v uint64) {
	mask := len(s.at) - 1
	i := s.home(v)
	for s.at[i&mask] != 0 {
		i++
	}
	s.at[i&mask] = v
}

// remove empties a slot and closes the gap: each following number moves into
// the gap, unless that would take it before its home slot.
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

// resize changes the number of slots to n.
func (s *slots) resize(n int) {
	old := s.at
	s.at, s.shift = make([]uint64, n), uint(64-bits.TrailingZeros(uint(n)))
	for _, v := range old {
		if v != 0 {
			s.put(v)
		}
	}
}

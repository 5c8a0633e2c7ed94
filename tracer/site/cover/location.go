package cover

import "math/bits"

// A location is a register, or a word of 8 bytes of the function's own frame. Registers have the
// numbers of the machine; the stack pointer is one of them. Words are counted downwards from the
// stack pointer at the entry.
type location uint8

const (
	registers = 32
	words     = 96 // deeper frames are not tracked below
	locations = registers + words

	nowhere location = locations
)

// wordAt returns the location of the word at an offset from the stack pointer at the entry.
func wordAt(offset int64) (location, bool) {
	if offset >= 0 || offset < -8*words || offset%8 != 0 {
		return nowhere, false
	}
	return location(registers - offset/8 - 1), true
}

// offset returns the offset of a word from the stack pointer at the entry.
func (l location) offset() int64 { return -8 * (int64(l) - registers + 1) }

// locations are a set of locations.
type locationSet [2]uint64

// everywhere is the set of all locations.
var everywhere = locationSet{^uint64(0), ^uint64(0)}

func (s *locationSet) add(l location)               { s[l/64] |= 1 << (l % 64) }
func (s *locationSet) remove(l location)            { s[l/64] &^= 1 << (l % 64) }
func (s locationSet) has(l location) bool           { return s[l/64]>>(l%64)&1 == 1 }
func (s locationSet) and(t locationSet) locationSet { return locationSet{s[0] & t[0], s[1] & t[1]} }
func (s locationSet) or(t locationSet) locationSet  { return locationSet{s[0] | t[0], s[1] | t[1]} }

// put adds or removes l.
func (s *locationSet) put(l location, in bool) {
	if in {
		s.add(l)
	} else {
		s.remove(l)
	}
}

// all calls yield for each location of the set, ascending.
func (s locationSet) all(yield func(location) bool) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			if !yield(location(64*i + bits.TrailingZeros64(w))) {
				return
			}
		}
	}
}

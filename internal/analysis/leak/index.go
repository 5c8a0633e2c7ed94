package leak

import (
	"math/bits"
	"math/rand/v2"
)

// index finds the call of a live block in a store: open addressing with linear
// probing, at most half full. A slot is the upper half of the hash and 1 more
// than the number of the call, so that eight of them share a cache line and the
// call, which is needed anyway, is looked at only where the hashes are the same.
// The hash is seeded at random, so that input made to collide does not. The zero
// index is empty.
type index struct {
	slots        []uint64 // 0 is an empty one
	n            int
	shift        uint // of a hash to a slot
	seed1, seed2 uint64
}

const (
	minSlots = 16
	// hashBits is how much of a hash a slot keeps, in its upper half.
	hashBits = 32
)

// hash returns the part of a hash that is kept, in the upper half.
func (x *index) hash(resource uint32, id uint64) uint64 {
	hi, lo := bits.Mul64(id^x.seed1, uint64(resource)*0x9e3779b97f4a7c16^x.seed2)
	return (hi ^ lo) >> hashBits << hashBits
}

// find returns the slot of a block and the number of its call, or false.
func (s *store) find(resource uint32, id uint64) (slot int, n uint32, ok bool) {
	x := &s.live
	if x.n == 0 {
		return 0, 0, false
	}
	mask := len(x.slots) - 1
	h := x.hash(resource, id)
	for i := int(h >> x.shift); ; i++ {
		v := x.slots[i&mask]
		if v == 0 {
			return 0, 0, false
		}
		if (v^h)>>hashBits == 0 {
			n := uint32(v) - 1
			if k := s.at(n); k.id == id && k.resource == resource {
				return i & mask, n, true
			}
		}
	}
}

// insert adds a block that is not there.
func (x *index) insert(resource uint32, id uint64, n uint32) {
	if 2*x.n >= len(x.slots) {
		x.resize(max(minSlots, 2*len(x.slots)))
	}
	x.put(x.hash(resource, id) | uint64(n+1))
	x.n++
}

func (x *index) put(v uint64) {
	mask := len(x.slots) - 1
	i := int(v >> x.shift)
	for x.slots[i&mask] != 0 {
		i++
	}
	x.slots[i&mask] = v
}

// replace gives the block in a slot another call.
func (x *index) replace(slot int, n uint32) {
	v := &x.slots[slot]
	*v = *v>>hashBits<<hashBits | uint64(n+1)
}

// remove takes out the block in a slot and closes the gap: what follows moves up
// unless it stands where it belongs or nearer to that than the gap.
func (x *index) remove(gap int) {
	slots := x.slots
	mask := len(slots) - 1
	for i := (gap + 1) & mask; slots[i] != 0; i = (i + 1) & mask {
		if home := int(slots[i] >> x.shift); (i-home)&mask >= (i-gap)&mask {
			slots[gap] = slots[i]
			gap = i
		}
	}
	slots[gap] = 0
	if x.n--; len(slots) > 4*minSlots && 8*x.n < len(slots) {
		x.resize(len(slots) / 2)
	}
}

// resize gives the index n slots, a power of two.
func (x *index) resize(n int) {
	if x.slots == nil {
		x.seed1, x.seed2 = rand.Uint64(), rand.Uint64()|1
	}
	old := x.slots
	x.slots, x.shift = make([]uint64, n), uint(64-bits.TrailingZeros(uint(n)))
	for _, v := range old {
		if v != 0 {
			x.put(v)
		}
	}
}

package leak

import (
	"math/bits"
	"math/rand/v2"
)

// index finds the call of a live block in a store. A slot contains the upper
// half of the block's hash, and the number of the call plus 1. The call is
// compared only where the hashes are equal. The zero index is empty.
type index struct {
	slots
	seed1, seed2 uint64
}

// hashBits is the number of hash bits that a slot keeps, in its upper half.
const hashBits = 32

// hash returns the kept part of a block's hash, in the upper half.
func (x *index) hash(resource uint32, id uint64) uint64 {
	hi, lo := bits.Mul64(id^x.seed1, uint64(resource)*0x9e3779b97f4a7c16^x.seed2)
	return (hi ^ lo) >> hashBits << hashBits
}

// find returns the slot of a block and the number of its call. If the block is
// not in the index, ok is false and slot is the empty one for it; slot is 0 if
// the index has no slots yet.
func (s *store) find(resource uint32, id uint64) (slot int, n uint32, ok bool) {
	x := &s.live
	if len(x.at) == 0 {
		return 0, 0, false
	}
	mask := len(x.at) - 1
	h := x.hash(resource, id)
	for i := x.home(h); ; i++ {
		v := x.at[i&mask]
		if v == 0 {
			return i & mask, 0, false
		}
		if (v^h)>>hashBits == 0 {
			n := uint32(v) - 1
			if k := s.at(n); k.id == id && k.resource == resource {
				return i & mask, n, true
			}
		}
	}
}

// insert adds a block that is not in the index, at the slot that find returned.
func (x *index) insert(slot int, resource uint32, id uint64, n uint32) {
	if x.full() {
		if x.at == nil {
			x.seed1, x.seed2 = rand.Uint64(), rand.Uint64()|1
		}
		x.grow()
		x.put(x.hash(resource, id) | uint64(n+1))
	} else {
		x.at[slot] = x.hash(resource, id) | uint64(n+1)
	}
	x.n++
}

// replace assigns another call to the block in a slot.
func (x *index) replace(slot int, n uint32) {
	v := &x.at[slot]
	*v = *v>>hashBits<<hashBits | uint64(n+1)
}

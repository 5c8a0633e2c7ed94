package leak

import (
	"math/bits"
	"math/rand/v2"
)

// index finds the call of a live block in a store. A slot is the upper half of the
// block's hash and 1 more than the number of the call, which is needed anyway and
// looked at only where the hashes are the same. The zero index is empty.
type index struct {
	slots
	seed1, seed2 uint64
}

// hashBits is how much of a hash a slot keeps, in its upper half.
const hashBits = 32

// hash returns the part of a hash that is kept, in the upper half.
func (x *index) hash(resource uint32, id uint64) uint64 {
	hi, lo := bits.Mul64(id^x.seed1, uint64(resource)*0x9e3779b97f4a7c16^x.seed2)
	return (hi ^ lo) >> hashBits << hashBits
}

// find returns the slot of a block and the number of its call. If there is none,
// ok is false and the slot, if the index has any, is the empty one for it.
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

// insert adds a block that is not there, at the slot that find returned.
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

// replace gives the block in a slot another call.
func (x *index) replace(slot int, n uint32) {
	v := &x.at[slot]
	*v = *v>>hashBits<<hashBits | uint64(n+1)
}

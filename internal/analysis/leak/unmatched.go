package leak

import (
	"math/bits"
	"math/rand/v2"

	"rtrace-bpf/trace"
)

// Unmatched counts the frees of blocks that are not live, as [Blocks] does,
// and nothing else, which takes a third of its time. Its memory is 32 to 64 bytes
// a live block.
type Unmatched struct {
	sets    processes[keySet]
	counted idSet // resources with reference counting
	nulls   idSet // resources in which id 0 is no block
	n       uint64
}

// NewUnmatched returns an Unmatched that has seen nothing.
func NewUnmatched() *Unmatched {
	u := &Unmatched{sets: newProcesses(newKeySet)}
	u.nulls.set(0, true)
	return u
}

// Count is how many there were. Frees of address 0 are not counted.
func (u *Unmatched) Count() uint64 { return u.n }

// Add takes a record, as [Blocks.Add] does.
func (u *Unmatched) Add(r *trace.Record) {
	c := &r.Call
	switch r.Kind {
	case trace.KindCall:
		switch c.Op {
		case trace.OpAlloc:
			u.sets.of(r.PID).insert(c.Resource, c.ID, u.counted.has(c.Resource))
		case trace.OpFree:
			u.free(u.sets.of(r.PID), c.Resource, c.ID)
		case trace.OpMove:
			s := u.sets.of(r.PID)
			if c.OldID != 0 {
				u.free(s, c.Resource, c.OldID)
			}
			s.insert(c.Resource, c.ID, u.counted.has(c.Resource))
		}
	case trace.KindResource:
		u.counted.set(r.Resource.ID, r.Resource.RefCount)
		u.nulls.set(r.Resource.ID, r.Resource.Type == "memory")
	case trace.KindExec:
		u.sets.drop(r.PID)
	}
}

func (u *Unmatched) free(s *keySet, resource uint32, id uint64) {
	if !s.remove(resource, id, u.counted.has(resource)) && (id != 0 || !u.nulls.has(resource)) {
		u.n++
	}
}

// keySet is a set of blocks with the number of their references: open
// addressing with linear probing, at most half full. Its hash is seeded at
// random, so that input made to collide does not.
type keySet struct {
	slots        []key
	n            int
	shift        uint // of a hash to a slot
	seed1, seed2 uint64
}

// key is a block; without references it is an empty slot.
type key struct {
	id       uint64
	resource uint32
	refs     uint32
}

const minKeys = 64

func newKeySet() *keySet {
	return &keySet{slots: make([]key, minKeys), shift: 64 - 6, seed1: rand.Uint64(), seed2: rand.Uint64() | 1}
}

func (s *keySet) home(resource uint32, id uint64) int {
	hi, lo := bits.Mul64(id^s.seed1, uint64(resource)*0x9e3779b97f4a7c16^s.seed2)
	return int((hi ^ lo) >> s.shift)
}

// find returns the slot of a block, or the empty one where it belongs.
func (s *keySet) find(resource uint32, id uint64) *key {
	mask := len(s.slots) - 1
	for i := s.home(resource, id); ; i = (i + 1) & mask {
		k := &s.slots[i&mask]
		if k.refs == 0 || k.id == id && k.resource == resource {
			return k
		}
	}
}

// insert makes a block live, or adds a reference if they are counted. One with
// 2^32-1 of them keeps them for ever.
func (s *keySet) insert(resource uint32, id uint64, counted bool) {
	k := s.find(resource, id)
	if k.refs != 0 {
		if !counted {
			k.refs = 1
		} else if k.refs != 1<<32-1 {
			k.refs++
		}
		return
	}
	*k = key{id, resource, 1}
	if s.n++; 2*s.n > len(s.slots) {
		s.resize(2 * len(s.slots))
	}
}

// remove takes a reference, or the block if they are not counted, and says
// whether it was live.
func (s *keySet) remove(resource uint32, id uint64, counted bool) bool {
	k := s.find(resource, id)
	switch {
	case k.refs == 0:
		return false
	case counted && k.refs == 1<<32-1:
		return true
	case counted && k.refs > 1:
		k.refs--
		return true
	}
	s.empty(k)
	if s.n--; len(s.slots) > minKeys && 8*s.n < len(s.slots) {
		s.resize(len(s.slots) / 2)
	}
	return true
}

// empty takes a key out and closes the gap: what follows moves up unless it
// stands where it belongs or nearer to it than the gap.
func (s *keySet) empty(k *key) {
	mask := len(s.slots) - 1
	gap := s.home(k.resource, k.id)
	for &s.slots[gap] != k {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; s.slots[i].refs != 0; i = (i + 1) & mask {
		home := s.home(s.slots[i].resource, s.slots[i].id)
		if (i-home)&mask >= (i-gap)&mask {
			s.slots[gap] = s.slots[i]
			gap = i
		}
	}
	s.slots[gap] = key{}
}

func (s *keySet) resize(n int) {
	old := s.slots
	s.slots, s.shift = make([]key, n), uint(64-bits.TrailingZeros(uint(n)))
	for _, k := range old {
		if k.refs != 0 {
			*s.find(k.resource, k.id) = k
		}
	}
}

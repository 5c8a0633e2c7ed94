package sites

// shortcuts remembers the numbers of places by the IDs of their stacks. It forgets some
// of them. The zero shortcuts is empty.
type shortcuts struct {
	sets []shortcutSet // by the low bits of the ID; their number is a power of two
}

// shortcutSet is a line of the processor's cache; the latest shortcut comes first.
type shortcutSet [4]shortcut

type shortcut struct {
	id     uint64 // 0 for none
	number uint32
}

// Limits of the number of sets: at least one for two places up to 1 MiB.
const (
	minSets = 1 << 4
	maxSets = 1 << 14
)

// find returns the number of the place of a stack with an ID that is not 0, or 0.
func (s *shortcuts) find(id uint64) uint32 {
	if len(s.sets) == 0 {
		return 0
	}
	set := &s.sets[id&uint64(len(s.sets)-1)]
	for i := range set {
		if set[i].id == id {
			return set[i].number
		}
	}
	return 0
}

// set adds a shortcut to a place, of which there are places.
func (s *shortcuts) set(id uint64, number uint32, places int) {
	if n := len(s.sets); 2*n < places && n < maxSets || n == 0 {
		s.sets = make([]shortcutSet, max(minSets, 2*n)) // they are found again
	}
	set := &s.sets[id&uint64(len(s.sets)-1)]
	copy(set[1:], set[:])
	set[0] = shortcut{id, number}
}

package live

// recent holds the blocks that began last, and keys of which no block is live. Most programs
// free most blocks soon and get their addresses again at once, so that most calls find here
// what they need. If they do not, the table does without for a while.
//
// A key is either here or in the shards. A slot with the state vacant means that its key is
// in neither. The zero recent takes no keys.
type recent struct {
	slots []slot // by hash; the length is 1<<recentBits or 0
	// found and missed count insertions since the slots were made or last judged.
	found, missed uint32
	wait          uint32 // insertions until the slots are made again
}

const (
	recentBits = 11
	// recentFrom is the number of blocks from which on a table has a recent.
	recentFrom = 32
	// vacant is a state without references.
	vacant = 1
	// A recent is judged after recentTrial insertions that missed. If fewer than that found
	// their key, it is closed for recentWait insertions.
	recentTrial = 1 << 12
	recentWait  = 1 << 17
)

// at returns the slot for a key, or nil.
func (r *recent) at(resource uint32, id uint64) *slot {
	if len(r.slots) != 1<<recentBits {
		return nil
	}
	h := (id + uint64(resource)<<40) * 0x9e3779b97f4a7c15
	return &r.slots[h>>(64-recentBits)]
}

// without counts an insertion without slots into a table of n blocks, and makes the slots if
// it is time for them.
func (r *recent) without(n int) {
	if r.wait > 0 {
		r.wait--
	} else if n >= recentFrom {
		*r = recent{slots: make([]slot, 1<<recentBits)}
	}
}

// miss counts an insertion that did not find its key. Once in a while it judges, and if the
// slots are of no use, it removes and returns them.
func (r *recent) miss() (closed []slot) {
	if r.missed++; r.missed < recentTrial {
		return nil
	}
	if r.found < r.missed {
		closed = r.slots
		r.slots, r.wait = nil, recentWait
	}
	r.found, r.missed = 0, 0
	return closed
}

// has reports whether the slot is about a key.
func (s *slot) has(resource uint32, id uint64) bool {
	return s.id == id && s.resource == resource && s.state != 0
}

// live reports whether the slot holds a block.
func (s *slot) live() bool { return s.state>>distBits != 0 }

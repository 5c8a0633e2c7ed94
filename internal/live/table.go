// Package live tracks which blocks are allocated and not yet freed, by the
// rules of [Blocks], and stores them in a [Table]. A Table maps (resource, id)
// to a small payload without pointers, so the garbage collector never scans it.
// It is made for tens of millions of insertions and removals per second, of
// blocks most of which are soon removed.
//
// The table uses open addressing with Robin Hood order in 64 independently
// sized shards. A shard grows by an eighth at a load of 76 %, so an entry of 32
// bytes never costs more than 48 including free slots, and no resize touches
// more than 1/64 of the table. Removal shifts the cluster back: there are no
// tombstones, and a shard whose load falls below a quarter shrinks. The blocks that began
// last are in a small table of their own, where most of them also end.
package live

import (
	"iter"
	"math/bits"
	"math/rand/v2"
)

// Entry is one live block.
type Entry struct {
	ID       uint64 // address, file descriptor …
	Size     uint64 // size passed to Insert
	Value    uint64 // the caller's value, passed to Insert
	Resource uint32
	// Refs is 1 more than the number of Retain calls not yet released.
	Refs uint32
}

const (
	shardBits = 6
	shards    = 1 << shardBits
	minSlots  = 8
	// A shard grows when more than loadNum/loadDen of its slots are used.
	// With growth by an eighth the load stays above 0.76/1.125 = 0.675 and an
	// entry below 32/0.675 = 47.4 bytes. A higher load makes clusters long.
	loadNum, loadDen = 19, 25
)

// Table maps (resource, id) to an Entry. Use [New] to create one.
type Table struct {
	seed1, seed2 uint64
	n            int
	bytes        uint64
	recent       recent
	shards       [shards]shard
}

// shard is one open-addressing table. Its entries are in the order of their
// home slots, wrapping around at the end.
type shard struct {
	slots []slot
	n     int
	limit int // grow above this many entries
}

// slot holds an Entry or is empty.
type slot struct {
	id, size, value uint64
	resource        uint32
	// state holds the references in its upper 24 bits, and in the lower 8 bits
	// 1 more than the distance from the home slot. 0 is an empty slot.
	state uint32
}

const (
	distBits = 8
	distMask = 1<<distBits - 1
	oneRef   = 1 << distBits
	maxRefs  = 1<<(32-distBits) - 1
)

func (s *slot) entry() Entry {
	return Entry{ID: s.id, Size: s.size, Value: s.value, Resource: s.resource, Refs: s.state >> distBits}
}

// New returns an empty table. Its hash is randomly seeded, so crafted input
// cannot cause collisions.
func New() *Table {
	return &Table{seed1: rand.Uint64(), seed2: rand.Uint64() | 1}
}

// Len returns the number of live entries.
func (t *Table) Len() int { return t.n }

// Bytes returns the sum of the sizes of the live entries, modulo 2^64.
func (t *Table) Bytes() uint64 { return t.bytes }

// hash hashes a key. The low bits select the shard, all bits the slot. Blocks often lie at
// equal distances, and a product alone keeps these equal: with some seeds, many blocks would
// have the same home. The second product comes after a shift, which breaks them up.
func (t *Table) hash(resource uint32, id uint64) uint64 {
	hi, lo := bits.Mul64(id^t.seed1, uint64(resource)*0x9e3779b97f4a7c16^t.seed2)
	h := hi ^ lo
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

// home returns the first slot to probe.
func home(h uint64, slots int) int {
	hi, _ := bits.Mul64(h, uint64(slots))
	return int(hi)
}

// find returns the slot of the key and true, or the slot where the key belongs
// with its state there, and false. The shard must have an empty slot.
func (s *shard) find(h uint64, resource uint32, id uint64) (at int, state uint32, ok bool) {
	slots := s.slots
	i := home(h, len(slots))
	for want := uint32(1); ; want++ {
		e := &slots[i]
		if e.id == id && e.resource == resource && e.state != 0 {
			return i, e.state, true
		}
		// An empty slot, or an entry closer to its home than the key would be:
		// the key is not in the table.
		if e.state&distMask < want {
			return i, oneRef | want, false
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
}

// Insert makes a block live with one reference. If the key is live already, its
// entry is replaced and returned.
func (t *Table) Insert(resource uint32, id, size, value uint64) (old Entry, replaced bool) {
	begun := slot{id: id, size: size, value: value, resource: resource, state: oneRef | 1}
	at := t.recent.at(resource, id)
	switch {
	case at == nil:
		old, replaced = t.put(&begun)
		t.recent.without(t.n)
	case at.has(resource, id):
		if at.live() {
			old, replaced = at.entry(), true
		}
		*at = begun
		t.recent.found++
	default:
		old, replaced = t.takeOut(resource, id)
		if at.live() {
			t.put(at)
		}
		*at = begun
		t.putAll(t.recent.miss())
	}
	t.bytes += size - old.Size
	if !replaced {
		t.n++
	}
	return old, replaced
}

// putAll adds the blocks in slots to the shards.
func (t *Table) putAll(slots []slot) {
	for i := range slots {
		if slots[i].live() {
			t.put(&slots[i])
		}
	}
}

// put adds a block to the shards with its references. If the key is there already, its
// entry is replaced and returned.
func (t *Table) put(e *slot) (old Entry, replaced bool) {
	h := t.hash(e.resource, e.id)
	s := &t.shards[h&(shards-1)]
	if s.n >= s.limit {
		// If the key is in the table, the shard grows one insertion early.
		t.resize(s, grown(len(s.slots)))
	}
	i, state, ok := s.find(h, e.resource, e.id)
	own := *e
	own.state = e.state&^distMask | state&distMask
	if ok {
		old = s.slots[i].entry()
		s.slots[i] = own
		return old, true
	}
	s.n++
	t.place(s, i, own)
	return Entry{}, false
}

// place puts a new entry into slot i with a valid state, and moves the entries
// from there to the next empty slot by one slot, because entries are in the
// order of their homes. If a distance would no longer fit into a state, the
// shard grows.
func (t *Table) place(s *shard, i int, e slot) {
	slots := s.slots
	if slots[i].state == 0 {
		slots[i] = e
		return
	}
	end, longest := i, e.state&distMask
	for ; slots[end].state != 0; end++ {
		longest = max(longest, slots[end].state&distMask)
		if end == len(slots)-1 {
			end = -1
		}
	}
	if longest == distMask {
		t.resize(s, grown(len(slots)))
		at, state, _ := s.find(t.hash(e.resource, e.id), e.resource, e.id)
		e.state = e.state&^distMask | state&distMask
		t.place(s, at, e)
		return
	}
	for end != i {
		from := end - 1
		if end == 0 {
			from = len(slots) - 1
		}
		slots[end] = slots[from]
		slots[end].state++
		end = from
	}
	slots[i] = e
}

// lookup returns the slot of a block in the shards.
func (t *Table) lookup(resource uint32, id uint64) (*shard, int, bool) {
	h := t.hash(resource, id)
	s := &t.shards[h&(shards-1)]
	if s.n == 0 {
		return nil, 0, false
	}
	i, _, ok := s.find(h, resource, id)
	return s, i, ok
}

// slot returns the slot of a live block, or nil.
func (t *Table) slot(resource uint32, id uint64) *slot {
	if at := t.recent.at(resource, id); at != nil && at.has(resource, id) {
		if at.live() {
			return at
		}
		return nil
	}
	s, i, ok := t.lookup(resource, id)
	if !ok {
		return nil
	}
	return &s.slots[i]
}

// Get returns the entry of a live block.
func (t *Table) Get(resource uint32, id uint64) (Entry, bool) {
	e := t.slot(resource, id)
	if e == nil {
		return Entry{}, false
	}
	return e.entry(), true
}

// Retain adds a reference to a live block and reports whether the block exists.
// A block with 2^24-1 references keeps them for ever.
func (t *Table) Retain(resource uint32, id uint64) bool {
	e := t.slot(resource, id)
	if e != nil && e.state>>distBits < maxRefs {
		e.state += oneRef
	}
	return e != nil
}

// Release removes a reference. Removing the last one removes the block. Release
// returns the entry with the remaining references (0: removed), and whether the
// key was live.
func (t *Table) Release(resource uint32, id uint64) (Entry, bool) {
	e := t.slot(resource, id)
	if e == nil {
		return Entry{}, false
	}
	switch e.state >> distBits {
	case 1:
		gone, ok := t.Remove(resource, id)
		gone.Refs = 0
		return gone, ok
	case maxRefs:
	default:
		e.state -= oneRef
	}
	return e.entry(), true
}

// adopt adds a block from another table, with its references.
func (t *Table) adopt(e Entry) {
	t.Insert(e.Resource, e.ID, e.Size, e.Value)
	t.slot(e.Resource, e.ID).state += (e.Refs - 1) * oneRef
}

// Remove removes a block, whatever its references, and returns its entry.
func (t *Table) Remove(resource uint32, id uint64) (e Entry, ok bool) {
	at := t.recent.at(resource, id)
	switch {
	case at == nil:
		e, ok = t.takeOut(resource, id)
	case at.has(resource, id):
		if ok = at.live(); ok {
			e = at.entry()
			at.state = vacant
		}
	default:
		e, ok = t.takeOut(resource, id)
		if !at.live() {
			at.id, at.resource, at.state = id, resource, vacant
		}
	}
	if ok {
		t.n--
		t.bytes -= e.Size
	}
	return e, ok
}

// takeOut removes a block from the shards.
func (t *Table) takeOut(resource uint32, id uint64) (Entry, bool) {
	s, i, ok := t.lookup(resource, id)
	if !ok {
		return Entry{}, false
	}
	return t.removeAt(s, i), true
}

func (t *Table) removeAt(s *shard, i int) Entry {
	slots := s.slots
	e := slots[i].entry()
	for {
		j := i + 1
		if j == len(slots) {
			j = 0
		}
		next := &slots[j]
		if next.state&distMask <= 1 { // empty or at its home
			break
		}
		slots[i] = *next
		slots[i].state--
		i = j
	}
	slots[i] = slot{}
	s.n--
	if n := len(slots); n > 8*minSlots && s.n < n/4 {
		t.resize(s, s.n*3/2)
	}
	return e
}

// All yields the live entries in no particular order. The table must not change
// during the iteration.
func (t *Table) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for i := range t.recent.slots {
			if e := &t.recent.slots[i]; e.live() && !yield(e.entry()) {
				return
			}
		}
		for i := range t.shards {
			for j := range t.shards[i].slots {
				if e := &t.shards[i].slots[j]; e.state != 0 && !yield(e.entry()) {
					return
				}
			}
		}
	}
}

// Clear removes all entries and frees their memory.
func (t *Table) Clear() {
	t.n, t.bytes, t.recent = 0, 0, recent{}
	t.shards = [shards]shard{}
}

// grown returns the next larger size of a shard with n slots.
func grown(n int) int {
	return n + max(minSlots, n/8)
}

// resize changes the number of slots of a shard to n.
func (t *Table) resize(s *shard, n int) {
	old := s.slots
	s.slots = make([]slot, n)
	s.limit = n * loadNum / loadDen
	for i := range old {
		e := &old[i]
		if e.state == 0 {
			continue
		}
		at, state, _ := s.find(t.hash(e.resource, e.id), e.resource, e.id)
		moved := *e
		moved.state = e.state&^distMask | state&distMask
		t.place(s, at, moved)
	}
}

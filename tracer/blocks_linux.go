package tracer

import "rtrace-bpf/internal/live"

// blocks are those that were allocated while recording and not freed. A gap in the
// recording, in which frees were not seen, makes all of them unknown: they are neither
// live nor freed until a free or an allocation at their address ends them. Other losses
// make nothing unknown: how many frees are missing at most is counted.
//
// Each block is in one of the tables, and goes from the first to the second at most once.
type blocks struct {
	known   *live.Table
	unknown *live.Table // nil before the first gap
}

func newBlocks() *blocks { return &blocks{known: live.New()} }

// insert makes a block live, and returns whether another one was at its address whose
// free was missed outside of a gap.
func (b *blocks) insert(addr, size, stack uint64) (replaced bool) {
	if b.unknown != nil {
		b.unknown.Remove(MemoryResource, addr)
	}
	_, replaced = b.known.Insert(MemoryResource, addr, size, stack)
	return replaced
}

// remove ends a block, and returns whether there was one.
func (b *blocks) remove(addr uint64) bool {
	if _, ok := b.known.Remove(MemoryResource, addr); ok {
		return true
	}
	if b.unknown == nil {
		return false
	}
	_, ok := b.unknown.Remove(MemoryResource, addr)
	return ok
}

// size returns the size of a block, and whether there is one.
func (b *blocks) size(addr uint64) (uint64, bool) {
	e, ok := b.known.Get(MemoryResource, addr)
	if !ok && b.unknown != nil {
		e, ok = b.unknown.Get(MemoryResource, addr)
	}
	return e.Size, ok
}

// gap makes the blocks unknown.
func (b *blocks) gap() {
	if b.unknown == nil || b.unknown.Len() == 0 {
		b.known, b.unknown = live.New(), b.known
		return
	}
	for e := range b.known.All() {
		b.unknown.Insert(e.Resource, e.ID, e.Size, e.Value)
	}
	b.known.Clear()
}

// count fills in the numbers of blocks and their bytes.
func (b *blocks) count(s *Stats) {
	s.LiveBlocks, s.LiveBytes = b.known.Len(), b.known.Bytes()
	if b.unknown != nil {
		s.UnknownBlocks, s.UnknownBytes = b.unknown.Len(), b.unknown.Bytes()
	}
}

package mptrace

import "rtrace-bpf/internal/live"

// nearBlocks is the number of slots for the youngest blocks.
const nearBlocks = 1 << 13

// block is a live block.
type block struct {
	index, address, size uint64
	born                 uint64 // event that allocated it; 0 if there is no block
}

// blocks holds the live blocks of a stream by index.
//
// Indices grow slowly and most blocks are freed soon. Each block is therefore
// put into the slot that the low bits of its index select, and moves to a table
// only when a younger block needs that slot. A block takes at most 64 bytes in
// the table, so the memory is in proportion to the live blocks for any indices.
type blocks struct {
	near    [nearBlocks]block
	highest uint64 // highest index so far
	far     *live.Table
	// rest holds the fields that do not fit into far. Its slots are reused.
	rest   []restOfBlock
	unused []uint32 // free slots in rest
}

type restOfBlock struct {
	address, born uint64
}

func newBlocks() *blocks { return &blocks{far: live.New()} }

// put makes b live. If its index was live already, put replaces and returns
// that block.
func (s *blocks) put(b block) (old block) {
	p := &s.near[b.index%nearBlocks]
	if p.born != 0 && p.index == b.index {
		old, *p = *p, b
		return old
	}
	if b.index <= s.highest {
		old = s.takeFar(b.index)
	}
	s.highest = max(s.highest, b.index)
	if p.born != 0 {
		s.putFar(p)
	}
	*p = b
	return old
}

// move changes the address and the size of a block, and returns its old state.
func (s *blocks) move(index, address, size uint64) (old block) {
	p := &s.near[index%nearBlocks]
	if p.born == 0 || p.index != index {
		old = s.takeFar(index)
		if old.born != 0 {
			s.putFar(&block{index: index, address: address, size: size, born: old.born})
		}
		return old
	}
	old = *p
	p.address, p.size = address, size
	return old
}

// take removes a block and returns it.
func (s *blocks) take(index uint64) (old block) {
	p := &s.near[index%nearBlocks]
	if p.born == 0 || p.index != index {
		return s.takeFar(index)
	}
	old = *p
	p.born = 0
	return old
}

func (s *blocks) putFar(b *block) {
	at := len(s.rest)
	if n := len(s.unused); n > 0 {
		at, s.unused = int(s.unused[n-1]), s.unused[:n-1]
	} else {
		s.rest = append(s.rest, restOfBlock{})
	}
	s.rest[at] = restOfBlock{address: b.address, born: b.born}
	s.far.Insert(0, b.index, b.size, uint64(at))
}

func (s *blocks) takeFar(index uint64) (old block) {
	e, ok := s.far.Remove(0, index)
	if !ok {
		return old
	}
	r := s.rest[e.Value]
	s.unused = append(s.unused, uint32(e.Value))
	return block{index: index, address: r.address, size: e.Size, born: r.born}
}

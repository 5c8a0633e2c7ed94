package original

import "sort"

// freedFlag is set in born of a freed block.
const freedFlag = 1 << 63

// block is the last state of a block that was ever allocated.
type block struct {
	index, address, size uint64
	born                 uint64 // event, and freedFlag
}

func (b *block) freed() bool { return b.born&freedFlag != 0 }

// chunk is the number of blocks in a chunk. Blocks are never moved.
const chunk = 1 << 12

// history holds all blocks by index. Indices grow slowly: the distance in
// blocks from the last block is at most the difference of the indices, and the
// search begins there.
type history struct {
	sorted []*[chunk]block // by index
	count  int             // in sorted
	strays map[uint64]*block
}

func (h *history) at(i int) *block { return &h.sorted[i/chunk][i%chunk] }

// find returns the block with an index, or nil.
func (h *history) find(index uint64) *block {
	n := h.count
	if n == 0 || index > h.at(n-1).index {
		return nil
	}
	low, high := 0, n
	if d := h.at(n-1).index - index; d < uint64(n) {
		low = n - 1 - int(d)
	}
	for step := 1; low+step < n; step *= 2 {
		if h.at(low+step).index > index {
			high = low + step
			break
		}
		low += step
	}
	low += sort.Search(high-low, func(i int) bool { return h.at(low+i).index >= index })
	if low < n && h.at(low).index == index {
		return h.at(low)
	}
	return h.strays[index]
}

// add adds a block with a new index.
func (h *history) add(index uint64) *block {
	if n := h.count; n > 0 && index < h.at(n-1).index {
		if h.strays == nil {
			h.strays = make(map[uint64]*block)
		}
		b := &block{index: index}
		h.strays[index] = b
		return b
	}
	if h.count == len(h.sorted)*chunk {
		h.sorted = append(h.sorted, new([chunk]block))
	}
	h.count++
	b := h.at(h.count - 1)
	b.index = index
	return b
}

package original

import "sort"

// freedFlag is set in the birth of a block that was freed.
const freedFlag = 1 << 63

// block is a block that was ever allocated, in its last state.
type block struct {
	index, address, size uint64
	born                 uint64 // event, and freedFlag
}

func (b *block) freed() bool { return b.born&freedFlag != 0 }

// history holds all blocks by their index. Indices grow by little: so a block is
// at least as many places from the last one as their indices differ less the
// gaps between, and near there it is searched.
type history struct {
	sorted []block // by index
	strays map[uint64]*block
}

// find returns the block with an index, or nil. It is valid until the next add.
func (h *history) find(index uint64) *block {
	if n := len(h.sorted); n > 0 && index <= h.sorted[n-1].index {
		low, high := 0, n
		if d := h.sorted[n-1].index - index; d < uint64(n) {
			low = n - 1 - int(d)
		}
		for step := 1; low+step < n; step *= 2 {
			if h.sorted[low+step].index > index {
				high = low + step
				break
			}
			low += step
		}
		i := low + sort.Search(high-low, func(i int) bool { return h.sorted[low+i].index >= index })
		if i < n && h.sorted[i].index == index {
			return &h.sorted[i]
		}
	}
	return h.strays[index]
}

// add adds a block with an index that has none.
func (h *history) add(index uint64) *block {
	if n := len(h.sorted); n > 0 && index < h.sorted[n-1].index {
		if h.strays == nil {
			h.strays = make(map[uint64]*block)
		}
		b := &block{index: index}
		h.strays[index] = b
		return b
	}
	h.sorted = append(h.sorted, block{index: index})
	return &h.sorted[len(h.sorted)-1]
}

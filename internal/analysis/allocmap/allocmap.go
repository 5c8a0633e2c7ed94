// Package allocmap draws where the blocks of a heap are, a character for a page,
// as sp-rtrace-allocmap does: to see what keeps the heap from shrinking.
package allocmap

import (
	"cmp"
	"slices"
)

// Heap is what is known of a heap; 0 is unknown.
type Heap struct {
	Base, Top uint64 // its first address, and the one behind it
	Low, High uint64 // lowest and highest address that was allocated
	KeepCost  uint64 // bytes below Top that could be given back
}

// Options are the choices of a Map.
type Options struct {
	PageSize uint64 // of a character, in bytes; 0 is 4096
	Single   bool   // there is one run: its blocks are drawn as #
	// Legacy draws and counts as the original does where it is wrong: marks
	// count as pages with data, that of the top hides what is below it, there is
	// none for the lowest address, and the map ends 64 MiB above the base.
	Legacy bool
}

// Limits of a map above its base, in bytes.
const (
	maxSize    = 4 << 30
	legacySize = 64 << 20
)

// header is about what an allocator keeps in front of a block.
const header = 8

// PerRow is how many pages a row has.
const PerRow = 64

// Map is a map of a heap.
type Map struct {
	options Options
	heap    Heap
	run     int
	inRun   bool
	blocks  []block
	largest uint64
}

type block struct {
	address, size uint64
	mark          byte
}

// New returns an empty map of a heap, of which more may be said later.
func New(o Options, h Heap) *Map {
	if o.PageSize == 0 {
		o.PageSize = 4096
	}
	return &Map{options: o, heap: h}
}

// Next begins another run, unless the one there is has no block yet. The blocks
// of ten runs are drawn as digits, those of further ones as #.
func (m *Map) Next() {
	if m.inRun {
		m.run++
		m.inRun = false
	}
}

// Say adds what is known of the heap: what is not 0 counts. The lowest base and
// the highest top of all runs are those of the map; with Legacy the first base
// and the last of all others.
func (m *Map) Say(h Heap) {
	if m.options.Legacy {
		m.heap = Heap{
			Base: cmp.Or(m.heap.Base, h.Base), Top: cmp.Or(h.Top, m.heap.Top), Low: cmp.Or(h.Low, m.heap.Low),
			High: cmp.Or(h.High, m.heap.High), KeepCost: cmp.Or(h.KeepCost, m.heap.KeepCost),
		}
		return
	}
	if h.Base != 0 && (m.heap.Base == 0 || h.Base < m.heap.Base) {
		m.heap.Base = h.Base
	}
	m.heap.Top = max(m.heap.Top, h.Top)
	m.heap.High = max(m.heap.High, h.High)
	if h.Low != 0 && (m.heap.Low == 0 || h.Low < m.heap.Low) {
		m.heap.Low = h.Low
	}
	m.heap.KeepCost = cmp.Or(h.KeepCost, m.heap.KeepCost)
}

// Heap is what was said so far.
func (m *Map) Heap() Heap { return m.heap }

// Add takes a block that is live at the end of the run.
func (m *Map) Add(address, size uint64) {
	m.inRun = true
	mark := byte('#')
	if !m.options.Single && m.run < 10 {
		mark = '0' + byte(m.run)
	}
	m.blocks = append(m.blocks, block{address, size, mark})
	m.largest = max(m.largest, size)
}

// Drawing is a map that is complete.
type Drawing struct {
	Base     uint64
	PageSize uint64
	// Cells are the pages from Base on, 0 where there is nothing: the digit of a
	// run or #, T for the top of the heap, | for what it could be cut to, < and >
	// for the lowest and the highest address.
	Cells   []byte
	Blocks  int
	Largest uint64 // bytes
	Pages   int    // with blocks
	Outside int    // blocks that are not in the heap and so not drawn
	Beyond  []string
}

// Draw completes the map. Blocks outside of the heap are those below its base,
// or above its top if that is known, or further above the base than a map goes.
func (m *Map) Draw() Drawing {
	size := m.options.PageSize
	h := m.heap
	if h.Base == 0 && !m.options.Legacy {
		h.Base = m.lowest()
	}
	d := Drawing{Base: h.Base - h.Base%size, PageSize: size, Blocks: len(m.blocks), Largest: m.largest}
	c := canvas{Drawing: &d, limit: maxSize / size}
	if m.options.Legacy {
		c.limit = legacySize / size
	}
	for _, b := range m.blocks {
		if !m.options.Legacy && h.Top != 0 && b.address >= h.Top || !c.block(b) {
			d.Outside++
		}
	}
	c.marks(&h, m.options.Legacy)
	return d
}

// lowest is the address of the lowest block.
func (m *Map) lowest() uint64 {
	if len(m.blocks) == 0 {
		return 0
	}
	low := slices.MinFunc(m.blocks, func(a, b block) int { return cmp.Compare(a.address, b.address) }).address
	return low - min(low, header)
}

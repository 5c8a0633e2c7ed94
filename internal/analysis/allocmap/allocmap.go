// Package allocmap draws a heap as text, one character for each page, in the
// way of sp-rtrace-allocmap. The drawing shows which blocks keep the heap from
// shrinking.
package allocmap

import (
	"cmp"
	"slices"
)

// Heap holds the bounds of a heap. A field that is 0 is unknown.
type Heap struct {
	Base, Top uint64 // first address, and the address after the last byte
	Low, High uint64 // lowest and highest address that was allocated
	KeepCost  uint64 // bytes below Top that the allocator could return to the system
}

// Options configure a Map.
type Options struct {
	PageSize uint64 // bytes that one character stands for; 0 means 4096
	Single   bool   // there is only one run: draw its blocks as #
	// Legacy reproduces the errors of the original: marks count as pages with
	// data, the mark of the top overwrites other marks, the lowest address has
	// no mark, and the map ends 64 MiB above the base.
	Legacy bool
}

// Limits of a map above its base, in bytes.
const (
	maxSize    = 4 << 30
	legacySize = 64 << 20
)

// header is roughly the size of the header that an allocator stores before a
// block, in bytes.
const header = 8

// PerRow is the number of pages in a row.
const PerRow = 64

// Map collects the blocks of a heap and draws them.
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

// New returns an empty map of a heap. [Map.Extend] adds bounds that become
// known later.
func New(o Options, h Heap) *Map {
	if o.PageSize == 0 {
		o.PageSize = 4096
	}
	return &Map{options: o, heap: h}
}

// Next begins another run, unless the current one has no blocks yet. The blocks
// of the first ten runs are drawn as digits, those of later runs as #.
func (m *Map) Next() {
	if m.inRun {
		m.run++
		m.inRun = false
	}
}

// Extend adds the known, nonzero fields of h to the bounds of the heap. The map
// spans from the lowest base to the highest top of all runs; with Legacy, from
// the first base to the last top.
func (m *Map) Extend(h Heap) {
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

// Heap returns the bounds of the heap that are known so far.
func (m *Map) Heap() Heap { return m.heap }

// Add adds a block that is live at the end of the current run.
func (m *Map) Add(address, size uint64) {
	m.inRun = true
	mark := byte('#')
	if !m.options.Single && m.run < 10 {
		mark = '0' + byte(m.run)
	}
	m.blocks = append(m.blocks, block{address, size, mark})
	m.largest = max(m.largest, size)
}

// Drawing is a finished map.
type Drawing struct {
	Base     uint64
	PageSize uint64
	// Cells holds one character for each page from Base on. It is 0 for an
	// empty page, the digit of a run or # for a block, T for the top of the
	// heap, | for the address to which the heap could shrink, and < and > for
	// the lowest and the highest address.
	Cells   []byte
	Blocks  int
	Largest uint64   // bytes
	Pages   int      // pages that contain blocks
	Outside int      // blocks outside of the heap, which are not drawn
	Beyond  []string // a message for each mark that lies outside of the map
}

// Draw draws the map. A block is outside of the heap if it lies below the base,
// above the top (if known), or further above the base than the map reaches.
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

// lowest returns the address at which the lowest block begins, including its
// header.
func (m *Map) lowest() uint64 {
	if len(m.blocks) == 0 {
		return 0
	}
	low := slices.MinFunc(m.blocks, func(a, b block) int { return cmp.Compare(a.address, b.address) }).address
	return low - min(low, header)
}

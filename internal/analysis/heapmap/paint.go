package heapmap

// Cell is the state of a piece of memory.
type Cell uint8

// The states, in the order in which they win when a cell has several. Used and
// the seven behind it say how much of the cell is allocated, in eighths,
// rounded up.
const (
	Unknown  Cell = iota // nothing is known: not the allocator's
	Heap                 // from the system; no block was seen in it
	Internal             // memory of what records the trace
	Freed                // not allocated now, but was
	Used
	Full = Used + 7 // allocated to the last eighth
)

// Grid cuts a stretch of the address space into cells, the first at Base.
type Grid struct {
	Base      uint64
	CellBytes uint64
	Cells     int
}

// region is the stretch that the grid covers, up to the end of the address space.
func (g Grid) region() Region {
	return Region{g.Base, g.Base + min(uint64(g.Cells)*g.CellBytes-1, ^g.Base)}
}

// Fit returns a grid for a region in at most cells cells of equal size, a power
// of two and no less than 16 bytes, which is how allocators align blocks.
func Fit(r Region, cells int) Grid {
	size := uint64(16)
	for (r.Size()-1)/size >= uint64(cells) {
		size *= 2
	}
	return Grid{r.Start, size, int((r.Size()-1)/size) + 1}
}

// Paint returns the states of the cells of a grid after an event. What is only
// partly inside counts with that part.
func (m *Map) Paint(g Grid, event uint64) []Cell {
	used, freed := newCoverage(g), newCoverage(g)
	for b := range m.Blocks() {
		switch {
		case b.live(event):
			used.add(b.Address, b.Last())
		case b.Born <= event:
			freed.add(b.Address, b.Last())
		}
	}
	freed.spans(m.Freed(), event)
	internal, heap := newCoverage(g), newCoverage(g)
	internal.spans(m.Internal(), event)
	heap.spans(m.Heap(), event)

	cells := make([]Cell, g.Cells)
	for i := range cells {
		n := used.next(i)
		f, in, h := freed.next(i), internal.next(i), heap.next(i)
		switch {
		case n > 0:
			cells[i] = Used + Cell((min(n, g.CellBytes)*8+g.CellBytes-1)/g.CellBytes) - 1
		case f > 0:
			cells[i] = Freed
		case in > 0:
			cells[i] = Internal
		case h > 0:
			cells[i] = Heap
		}
	}
	return cells
}

// coverage sums up how many bytes of each cell are covered.
type coverage struct {
	Grid
	last  uint64   // of the grid
	parts []uint64 // bytes of stretches that begin or end in the cell
	steps []int    // by how many the stretches change, that cover it wholly
	whole int      // stretches that cover the cell at hand wholly
}

func newCoverage(g Grid) *coverage {
	return &coverage{Grid: g, last: g.region().Last, parts: make([]uint64, g.Cells), steps: make([]int, g.Cells+1)}
}

// add adds the stretch from start to last, both included.
func (c *coverage) add(start, last uint64) {
	if last < c.Base || start > c.last {
		return
	}
	from, to := max(start, c.Base)-c.Base, min(last, c.last)-c.Base
	i, j := from/c.CellBytes, to/c.CellBytes
	if i == j {
		c.parts[i] += to - from + 1
		return
	}
	c.parts[i] += (i+1)*c.CellBytes - from
	c.parts[j] += to - j*c.CellBytes + 1
	c.steps[i+1]++
	c.steps[j]--
}

func (c *coverage) spans(list []Span, event uint64) {
	for _, s := range list {
		if s.Since <= event {
			c.add(s.Start, s.Last)
		}
	}
}

// next returns the bytes of cell i, which is the one after that of the last call.
func (c *coverage) next(i int) uint64 {
	c.whole += c.steps[i]
	return c.parts[i] + uint64(c.whole)*c.CellBytes
}

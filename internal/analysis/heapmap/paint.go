package heapmap

// Cell is the state of a piece of memory.
type Cell uint8

// The states in ascending priority: a cell with several has the last of them.
// Used and the seven states after it count the allocated eighths of the cell,
// rounded up.
const (
	Unknown  Cell = iota // not known to belong to the allocator
	Heap                 // got from the system; no block was in it
	Internal             // memory of the recorder of the trace
	Freed                // allocated before, but not now
	Used
	Full = Used + 7 // all eighths are allocated
)

// Grid divides a range of the address space into cells, the first at Base.
type Grid struct {
	Base      uint64
	CellBytes uint64
	Cells     int
}

// region returns the range that the grid covers, which ends with the address
// space.
func (g Grid) region() Region {
	return Region{g.Base, g.Base + min(uint64(g.Cells)*g.CellBytes-1, ^g.Base)}
}

// Fit returns a grid that covers a region in at most the given number of cells.
// The cell size is a power of two and at least 16 bytes, the alignment of
// allocators.
func Fit(r Region, cells int) Grid {
	size := uint64(16)
	for (r.Size()-1)/size >= uint64(cells) {
		size *= 2
	}
	return Grid{r.Start, size, int((r.Size()-1)/size) + 1}
}

// Paint returns the states of the cells of a grid after an event. Blocks that
// lie partly in the grid count with that part.
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

// coverage counts the covered bytes of each cell.
type coverage struct {
	Grid
	last  uint64   // last address of the grid
	parts []uint64 // bytes of ranges that begin or end in the cell
	steps []int    // changes of whole from cell to cell
	whole int      // ranges that cover the current cell completely
}

func newCoverage(g Grid) *coverage {
	return &coverage{Grid: g, last: g.region().Last, parts: make([]uint64, g.Cells), steps: make([]int, g.Cells+1)}
}

// add adds the range from start to last, both included.
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

// next returns the covered bytes of cell i. It must be called for each cell in
// order.
func (c *coverage) next(i int) uint64 {
	c.whole += c.steps[i]
	return c.parts[i] + uint64(c.whole)*c.CellBytes
}

package digest

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/analysis/cube"
)

// Intervals are the parts of the trace by which cells are counted.
type Intervals struct {
	Time   bool     // Width is in nanoseconds since the first call, or else in events
	Width  uint64   // of an interval
	Events []uint64 // by interval: the number of events up to its end
}

// Cell is the blocks of a class of sizes that a thread allocated with a stack.
type Cell struct {
	Place, Thread int // indexes in the Resource
	Class         uint8
	Parts         []cube.Part // in the order of intervals
}

// cell identifies a Cell in progress.
type cell struct {
	row, thread uint32
	class       uint8
}

// cells is all cells of a trace.
type cells struct {
	cube.Cube
	all    []cell
	byCell map[cell]uint32
	begun  bool
	time   bool // positions are times
}

// at moves on to a call, and returns its position. Positions are times if the first call has one.
func (k *cells) at(event uint64, now int64, timed bool) uint64 {
	if !k.begun {
		k.begun, k.time = true, timed
	}
	position := event - 1
	if k.time {
		position = uint64(now)
	}
	k.At(position, event)
	return position
}

// number returns the number of a cell.
func (k *cells) number(c cell) uint32 {
	n, ok := k.byCell[c]
	if !ok {
		if k.byCell == nil {
			k.byCell = make(map[cell]uint32)
		}
		n = k.Cell()
		k.byCell[c] = n
		k.all = append(k.all, c)
	}
	return n
}

// ofResource returns the cells of a resource. places and threads are the indexes in the result of each
// row and each thread.
func (k *cells) ofResource(rows []row, of *resource, places []int, threads []int) []Cell {
	var out []Cell
	for n, c := range k.all {
		if int(rows[c.row].resource) == of.number {
			out = append(out, Cell{places[c.row], threads[c.thread], c.class, k.Parts(uint32(n))})
		}
	}
	slices.SortStableFunc(out, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Class, b.Class))
	})
	return out
}

// Package cube counts blocks by cell and by interval of time, so that a reader of the counts can
// select blocks by when they were allocated. What a cell stands for is up to the caller: for example
// the blocks that one thread allocated with one stack.
package cube

import (
	"cmp"
	"math/bits"
	"slices"

	"rtrace-bpf/internal/live"
)

const (
	// Intervals is the largest number of intervals.
	Intervals = 128
	// maxParts is the number of parts from which on intervals are joined, if there are several.
	maxParts = 1 << 18
)

// Part is what happened to the blocks of a cell in one interval.
type Part struct {
	Interval uint32
	before   uint32      // 1 + the number of the part before it in the cell
	Made     live.Amount // allocated in the interval
	Ended    live.Amount // freed or lost from view in the interval, whenever allocated
	// The blocks allocated in the interval that were temporary, that are live at the end of the
	// trace, and of which that is not known.
	Temporary, Kept, Unknown live.Amount
}

// Add adds the amounts of another part.
func (p *Part) Add(o *Part) {
	p.Made.Add(o.Made)
	p.Ended.Add(o.Ended)
	p.Temporary.Add(o.Temporary)
	p.Kept.Add(o.Kept)
	p.Unknown.Add(o.Unknown)
}

// Cube holds the parts of cells. Positions never go back. When there are too many intervals or
// parts, it joins each two intervals. The zero Cube is ready for use.
type Cube struct {
	shift  uint     // an interval has 1<<shift positions
	events []uint64 // by interval: the number of events up to its end
	parts  live.Values[Part]
	count  int
	most   int      // number of parts from which on intervals are joined; 0 means maxParts
	last   []uint32 // by cell: 1 + the number of its last part
}

// Cell adds a cell and returns its number.
func (c *Cube) Cell() uint32 {
	c.last = append(c.last, 0)
	return uint32(len(c.last) - 1)
}

// At moves on to a position, at which the event with the given number is.
func (c *Cube) At(position, event uint64) {
	for position>>c.shift >= Intervals {
		c.halve()
	}
	for uint64(len(c.events)) <= position>>c.shift {
		before := uint64(0)
		if n := len(c.events); n > 0 {
			before = c.events[n-1]
		}
		c.events = append(c.events, before)
	}
	c.events[len(c.events)-1] = event
}

// part returns a part by 1 + its number.
func (c *Cube) part(n uint32) *Part { return c.parts.At(uint64(n - 1)) }

// add adds a part, whose number is the number of parts before.
func (c *Cube) add(p Part) *Part {
	_, at := c.parts.New()
	*at = p
	c.count++
	return at
}

// now returns the part of a cell in the current interval.
func (c *Cube) now(cell uint32) *Part {
	if c.count >= cmp.Or(c.most, maxParts) && len(c.events) > 1 {
		c.halve()
	}
	interval := uint32(max(1, len(c.events)) - 1)
	n := c.last[cell]
	if n != 0 {
		if p := c.part(n); p.Interval == interval {
			return p
		}
	}
	p := c.add(Part{Interval: interval, before: n})
	c.last[cell] = uint32(c.count)
	return p
}

// born returns the part of a cell at the position at which one of its blocks was allocated.
func (c *Cube) born(cell uint32, position uint64) *Part {
	p := c.part(c.last[cell])
	for uint64(p.Interval) > position>>c.shift && p.before != 0 {
		p = c.part(p.before)
	}
	return p
}

// Made counts an allocated block.
func (c *Cube) Made(cell uint32, size uint64) { c.now(cell).Made.AddBlock(size) }

// Ended counts blocks that ended.
func (c *Cube) Ended(cell uint32, a live.Amount) { c.now(cell).Ended.Add(a) }

// Temporary counts a temporary block, which was allocated at a position.
func (c *Cube) Temporary(cell uint32, position, size uint64) {
	c.born(cell, position).Temporary.AddBlock(size)
}

// Kept counts a block that is live at the end of the trace, or of which that is not known.
func (c *Cube) Kept(cell uint32, position, size uint64, known bool) {
	p := c.born(cell, position)
	if !known {
		p.Unknown.AddBlock(size)
		return
	}
	p.Kept.AddBlock(size)
}

// KeepAll counts the blocks of a cell that have not ended as live at the end of the trace. Those that
// ended must be the oldest.
func (c *Cube) KeepAll(cell uint32) {
	var left live.Amount
	for n := c.last[cell]; n != 0; n = c.part(n).before {
		left.Add(c.part(n).Made)
		left.Sub(c.part(n).Ended)
	}
	for n := c.last[cell]; n != 0; n = c.part(n).before {
		p := c.part(n)
		if p.Kept = p.Made; left.Blocks < p.Made.Blocks {
			p.Kept = left
		}
		left.Sub(p.Kept)
	}
}

// halve joins each two intervals.
func (c *Cube) halve() {
	c.shift++
	half := c.events[:0]
	for i := 0; i < len(c.events); i += 2 {
		half = append(half, c.events[min(i+1, len(c.events)-1)])
	}
	c.events = half
	old := Cube{parts: c.parts}
	c.parts, c.count = live.Values[Part]{}, 0
	for cell := range c.last {
		c.last[cell] = c.join(&old, c.last[cell])
	}
}

// join copies the parts of a cell, of which n is 1 + the number of the last one, and joins those that
// are now in the same interval. It returns 1 + the number of the last copy.
func (c *Cube) join(old *Cube, n uint32) uint32 {
	if n == 0 {
		return 0
	}
	last := uint32(c.count + 1)
	var before *Part
	for ; n != 0; n = old.part(n).before {
		p := *old.part(n)
		p.Interval >>= 1
		p.before = 0
		if before != nil && before.Interval == p.Interval {
			before.Add(&p)
			continue
		}
		if before != nil {
			before.before = uint32(c.count + 1)
		}
		before = c.add(p)
	}
	return last
}

// Width returns the number of positions of an interval.
func (c *Cube) Width() uint64 { return 1 << c.shift }

// Events returns the number of events up to the end of each interval.
func (c *Cube) Events() []uint64 { return c.events }

// Parts returns the parts of a cell, in the order of intervals.
func (c *Cube) Parts(cell uint32) []Part {
	var all []Part
	for n := c.last[cell]; n != 0; n = c.part(n).before {
		all = append(all, *c.part(n))
	}
	slices.Reverse(all)
	return all
}

// Class returns the class of a size: 0 for size 0, and n for sizes from 4^(n-1) to 4^n-1.
func Class(size uint64) uint8 { return uint8((bits.Len64(size) + 1) / 2) }

// Sizes returns the smallest and the largest size of a class.
func Sizes(class uint8) (from, to uint64) {
	if class == 0 {
		return 0, 0
	}
	return 1 << (2 * (class - 1)), 1<<(2*(class-1)) - 1 + 3<<(2*(class-1))
}

package consumption

import "math/bits"

// Curve is a quantity over the course of the trace, in columns of equal width.
type Curve struct {
	columns []Column
	limit   int    // largest number of columns, at most one for each position
	width   uint64 // positions on the axis, at least 1
	last    int    // column of the last value, or -1
}

// Column holds the least, the most and the last value in it. A column without
// values has the last value of the one before.
type Column struct {
	Min, Max, Last uint64
	Set            bool // whether there was a value
}

func newCurve(limit int, width int64) *Curve {
	return &Curve{limit: fit(limit, width), width: uint64(width) + 1, last: -1}
}

// fit returns the number of columns for an axis with width+1 positions.
func fit(limit int, width int64) int { return int(min(int64(limit-1), width)) + 1 }

// column returns the column of a position on the axis.
func (c *Curve) column(place int64) int { return column(place, c.limit, c.width) }

func column(place int64, limit int, width uint64) int {
	hi, lo := bits.Mul64(uint64(max(0, place)), uint64(limit))
	if hi >= width {
		return limit - 1
	}
	n, _ := bits.Div64(hi, lo, width)
	return int(min(n, uint64(limit-1)))
}

// add adds a value. Positions do not go back.
func (c *Curve) add(place int64, v uint64) {
	n := max(c.column(place), c.last)
	for len(c.columns) <= n {
		var p Column
		if len(c.columns) > 0 {
			p.Last = c.columns[len(c.columns)-1].Last
			p.Min, p.Max = p.Last, p.Last
		}
		c.columns = append(c.columns, p)
	}
	p := &c.columns[n]
	if !p.Set {
		p.Min, p.Max = v, v
	}
	p.Set = true
	p.Min, p.Max, p.Last = min(p.Min, v), max(p.Max, v), v
	c.last = n
}

// Columns returns the columns up to the end of the axis.
func (c *Curve) Columns() []Column {
	out := append([]Column(nil), c.columns...)
	for len(out) > 0 && len(out) < c.limit {
		last := out[len(out)-1].Last
		out = append(out, Column{Min: last, Max: last, Last: last})
	}
	return out
}

// Edges returns the first position in each of n columns of an axis with the
// given width, and the end of the last column.
func Edges(n int, width int64) []uint64 {
	edges := make([]uint64, 0, n+1)
	for i := range n + 1 {
		hi, lo := bits.Mul64(uint64(i), uint64(width)+1)
		edge, rest := bits.Div64(hi, lo, uint64(max(1, n)))
		if rest > 0 {
			edge++
		}
		edges = append(edges, min(edge, uint64(width)))
	}
	return edges
}

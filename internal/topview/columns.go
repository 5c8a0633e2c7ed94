package topview

import "strings"

// columnSet is the columns that a screen has room for.
type columnSet struct {
	shown []int // indexes of cells
	spark int   // columns of the sparkline
}

// columnWidths are those of cells.
var columnWidths = [...]int{10, 8, 12, 10, 8}

// columnsFor returns the columns for a width. A narrow screen shows the rate in bytes only if
// rows are sorted by it, instead of the calls. Where call sites would have no room, a screen has no
// sparklines, and at last only the figure that rows are sorted by.
func columnsFor(width int, order Order) columnSet {
	switch {
	case width >= 160:
		return columnSet{[]int{0, 1, 2, 3, 4}, 30}
	case width >= 110:
		return columnSet{[]int{0, 1, 2, 3, 4}, 15}
	case width < 55:
		return columnSet{[]int{sortedBy[order]}, 0}
	}
	c := columnSet{[]int{0, 1, 2}, 8}
	if order == OrderRate {
		c.shown = []int{0, 2, 3}
	}
	if width < 70 {
		c.spark = 0
	}
	return c
}

// sortedBy are the cells with the figures of orders.
var sortedBy = map[Order]int{OrderLive: 0, OrderCount: 1, OrderGrowth: 2, OrderRate: 3}

// low is the height of a screen from which on lines are left out that repeat what others show.
const low = 10

// width returns how many columns precede the text of a row.
func (c *columnSet) width() int {
	n := 1
	if c.spark > 0 {
		n += c.spark + 1
	}
	for _, i := range c.shown {
		n += columnWidths[i] + 1
	}
	return n
}

// line returns a line of cells, a sparkline and a text.
func (c *columnSet) line(cells []string, spark, text string) string {
	var b strings.Builder
	for _, i := range c.shown {
		b.WriteString(strings.Repeat(" ", max(0, columnWidths[i]-width(cells[i]))) + cells[i] + " ")
	}
	if c.spark > 0 {
		b.WriteString(" " + spark + strings.Repeat(" ", max(0, c.spark-width(spark))))
	}
	b.WriteString(" " + text)
	return b.String()
}

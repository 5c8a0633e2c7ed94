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
// rows are sorted by it, instead of the calls.
func columnsFor(width int, order Order) columnSet {
	switch {
	case width >= 160:
		return columnSet{[]int{0, 1, 2, 3, 4}, 30}
	case width >= 110:
		return columnSet{[]int{0, 1, 2, 3, 4}, 15}
	case order == OrderRate:
		return columnSet{[]int{0, 2, 3}, 8}
	}
	return columnSet{[]int{0, 1, 2}, 8}
}

// width returns how many columns precede the text of a row.
func (c *columnSet) width() int {
	n := c.spark + 2
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
	b.WriteString(" " + spark + strings.Repeat(" ", max(0, c.spark-width(spark))) + " " + text)
	return b.String()
}

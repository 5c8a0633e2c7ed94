// Package table prints rows of text in aligned columns, with headings over one
// column or several. Columns are as wide as their contents require.
package table

import (
	"bufio"
	"io"
	"strings"
	"unicode/utf8"
)

// Column is a column of a table.
type Column struct {
	Title string
	// Left aligns to the left. If the last column is aligned to the left, it
	// has no trailing blanks.
	Left bool
	// Gap is the number of blanks before the column: 0 means 2, and a negative
	// value none.
	Gap int
	// Group is a heading over this column and the neighbours with the same
	// Group.
	Group string
	// Width is the minimum width.
	Width int
}

// Table is a heading and rows. Create it with New.
type Table struct {
	columns []Column
	rows    []row
}

// row is a row of cells, or a rule.
type row struct {
	cells []string
	rule  bool
}

// New returns a table without rows.
func New(columns ...Column) *Table {
	return &Table{columns: columns}
}

// Row adds a row. Missing cells at the end are empty; cells beyond the last
// column are left out.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, row{cells: cells}) }

// Blank adds an empty line.
func (t *Table) Blank() { t.Row() }

// Rule adds a line of hyphens. It is as wide as the columns, except that a last
// column on the left counts with the width of its heading.
func (t *Table) Rule() { t.rows = append(t.rows, row{rule: true}) }

// WriteTo implements io.WriterTo. It writes row by row, without holding the
// whole text in memory.
func (t *Table) WriteTo(w io.Writer) (int64, error) {
	widths := t.widths()
	out := &counter{w: w}
	b := bufio.NewWriterSize(out, 1<<16)
	write := func(text string) { _, _ = b.WriteString(text) } // Flush returns the error
	write(t.groups(widths))
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.Title
	}
	write(t.line(widths, titles))
	for _, r := range t.rows {
		if r.rule {
			write(strings.Repeat("-", t.end(widths)) + "\n")
			continue
		}
		write(t.line(widths, r.cells))
	}
	err := b.Flush()
	return out.n, err
}

// counter counts the bytes written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// widths returns the width of each column.
func (t *Table) widths() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = max(c.Width, utf8.RuneCountInString(c.Title))
	}
	for _, r := range t.rows {
		for i, cell := range r.cells[:min(len(r.cells), len(widths))] {
			if i < len(widths)-1 || !t.columns[i].Left {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
	}
	return widths
}

// gap returns the number of blanks before column i.
func (t *Table) gap(i int) int {
	switch gap := t.columns[i].Gap; {
	case gap < 0 || gap == 0 && i == 0:
		return 0
	case gap == 0:
		return 2
	default:
		return gap
	}
}

// end returns the total width of the columns.
func (t *Table) end(widths []int) int {
	end := 0
	for i, w := range widths {
		end += t.gap(i) + w
	}
	return end
}

// line formats a row, with its line break.
func (t *Table) line(widths []int, cells []string) string {
	var line strings.Builder
	for i := range min(len(cells), len(t.columns)) {
		pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cells[i])))
		line.WriteString(strings.Repeat(" ", t.gap(i)))
		if t.columns[i].Left {
			line.WriteString(cells[i] + pad)
		} else {
			line.WriteString(pad + cells[i])
		}
	}
	return strings.TrimRight(line.String(), " ") + "\n"
}

// groups returns the headings over several columns, and a line of hyphens under
// them.
func (t *Table) groups(widths []int) string {
	var names, rules strings.Builder
	at, found := 0, false
	for i := 0; i < len(t.columns); {
		group := t.columns[i].Group
		start := at + t.gap(i)
		at = start + widths[i]
		for i++; i < len(t.columns) && t.columns[i].Group == group; i++ {
			at += t.gap(i) + widths[i]
		}
		if group == "" {
			continue
		}
		found = true
		width := at - start
		place(&names, start+max(0, width-utf8.RuneCountInString(group))/2, group)
		place(&rules, start, strings.Repeat("-", width))
	}
	if !found {
		return ""
	}
	return names.String() + "\n" + rules.String() + "\n"
}

// place appends text at a column.
func place(b *strings.Builder, column int, text string) {
	b.WriteString(strings.Repeat(" ", max(0, column-utf8.RuneCountInString(b.String()))) + text)
}

// Package table prints rows of text in aligned columns, as wide as they have to
// be, with headings over one column or several.
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
	// Left aligns to the left. A last column on the left has no blanks behind.
	Left bool
	// Gap is the number of blanks in front; 2 if it is 0, none if it is negative.
	Gap int
	// Group is the heading over this and those next to it with the same one.
	Group string
	// Width is the least width.
	Width int
}

// Table is rows under a heading. Make one with New.
type Table struct {
	columns []Column
	rows    []row
}

// row is a row of cells, or text of its own.
type row struct {
	cells []string
	rule  bool
}

// New returns a table without rows.
func New(columns ...Column) *Table {
	return &Table{columns: columns}
}

// Row adds a row. Cells that are missing at the end are empty, and those beyond
// the last column are left out.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, row{cells: cells}) }

// Blank adds an empty line.
func (t *Table) Blank() { t.Row() }

// Rule adds a line of hyphens over all columns but what the last one has more
// than its heading.
func (t *Table) Rule() { t.rows = append(t.rows, row{rule: true}) }

// WriteTo implements io.WriterTo. It does not hold the whole text.
func (t *Table) WriteTo(w io.Writer) (int64, error) {
	widths := t.widths()
	out := &counter{w: w}
	b := bufio.NewWriterSize(out, 1<<16)
	write := func(text string) { _, _ = b.WriteString(text) } // Flush tells
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

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// widths returns how wide each column is.
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

// gap is the number of blanks in front of column i.
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

// end is where the columns end.
func (t *Table) end(widths []int) int {
	end := 0
	for i, w := range widths {
		end += t.gap(i) + w
	}
	return end
}

// line is a row, with its end.
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

// groups returns the headings over several columns, and a line under each.
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

// place writes text from a column on.
func place(b *strings.Builder, column int, text string) {
	b.WriteString(strings.Repeat(" ", max(0, column-utf8.RuneCountInString(b.String()))) + text)
}

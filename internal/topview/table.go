package topview

import (
	"fmt"
	"io"
	"slices"

	"rtrace-bpf/internal/report/table"
)

// titles are the headings of rows.
var titles = map[By]string{
	BySite: "call site", ByFunction: "function", ByFile: "source file", ByLibrary: "library", ByThread: "thread", BySize: "size of the blocks",
}

// cells returns the figures of a row.
func (l *listing) cells(r *Row) []string {
	alive, blocks := Bytes(r.Live.Bytes), fmt.Sprint(r.Live.Blocks)
	if l.query.mark != nil {
		alive, blocks = signed(float64(r.Since.Bytes)), signedCount(r.Since.Blocks)
	}
	return []string{alive, blocks, signed(r.Growth), bytesOf(r.Rate), Count(r.Calls)}
}

// headings returns the headings of cells. The one of the order has a mark.
func (l *listing) headings() []string {
	all := []string{"live", "blocks", "growth/s", "alloc/s", "calls/s"}
	if l.query.mark != nil {
		all[0], all[1] = "since mark", "blocks"
	}
	at := slices.Index([]Order{OrderLive, OrderCount, OrderGrowth, OrderRate}, l.query.order)
	all[at] = "*" + all[at]
	return all
}

// TableWidth is the number of columns of a table where no terminal sets another one.
const TableWidth = 150

// writeTable writes the lines about the processes and the first rows as text.
func (l *listing) writeTable(w io.Writer, rows, width int) error {
	lines := l.header()
	if verdicts := l.suspects.lines(width); len(verdicts) > 0 {
		lines = append(append(lines, ""), verdicts...)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	var columns []table.Column
	for _, title := range l.headings() {
		columns = append(columns, table.Column{Title: title})
	}
	t := table.New(append(columns, table.Column{Title: titles[l.query.by], Left: true})...)
	shown := l.rows[:min(rows, len(l.rows))]
	room := max(leastText, width-l.figureWidth(shown))
	for i := range shown {
		t.Row(append(l.cells(&shown[i]), shown[i].fit(room))...)
	}
	if others := l.rows[len(shown):]; len(others) > 0 {
		sum := total(others)
		t.Row(append(l.cells(sum.row()), "in "+more(len(others)))...)
	}
	_, err := t.WriteTo(w)
	return err
}

// leastText is how many columns the text of a row has at least.
const leastText = 20

// figureWidth returns how many columns a table takes for the figures of rows.
func (l *listing) figureWidth(rows []Row) (n int) {
	widths := make([]int, len(l.headings()))
	grow := func(cells []string) {
		for i, cell := range cells {
			widths[i] = max(widths[i], width(cell))
		}
	}
	grow(l.headings())
	for i := range rows {
		grow(l.cells(&rows[i]))
	}
	for _, w := range widths {
		n += w + len("  ")
	}
	return n
}

// more returns how many rows are left out.
func more(n int) string {
	if n == 1 {
		return "1 other row"
	}
	return fmt.Sprintf("%d other rows", n)
}

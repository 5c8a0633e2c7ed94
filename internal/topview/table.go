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
func (m *Model) cells(r *Row) []string {
	live, blocks := Bytes(r.Live.Bytes), fmt.Sprint(r.Live.Blocks)
	if m.mark != nil {
		live, blocks = signed(float64(r.Since.Bytes)), signedCount(r.Since.Blocks)
	}
	return []string{live, blocks, signed(r.Growth), bytesOf(r.Rate), Count(r.Calls)}
}

// headings returns the headings of cells. The one of the order has a mark.
func (m *Model) headings() []string {
	all := []string{"live", "blocks", "growth/s", "alloc/s", "calls/s"}
	if m.mark != nil {
		all[0], all[1] = "since mark", "blocks"
	}
	at := slices.Index([]Order{OrderLive, OrderCount, OrderGrowth, OrderRate}, m.order)
	all[at] = "*" + all[at]
	return all
}

// TableWidth is the number of columns of a table where no terminal sets another one.
const TableWidth = 150

// WriteTable writes the lines about the processes and the first rows as text, in lines of at
// most width columns, unless the figures take more.
func (m *Model) WriteTable(w io.Writer, rows, width int) error {
	lines := m.header()
	leading := m.suspects()
	if verdicts := leading.lines(width); len(verdicts) > 0 {
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
	for _, title := range m.headings() {
		columns = append(columns, table.Column{Title: title})
	}
	t := table.New(append(columns, table.Column{Title: titles[m.by], Left: true})...)
	shown := m.all[:min(rows, len(m.all))]
	room := max(leastText, width-m.figureWidth(shown))
	for i := range shown {
		t.Row(append(m.cells(&shown[i]), shown[i].fit(room))...)
	}
	if others := m.all[len(shown):]; len(others) > 0 {
		sum := total(others)
		t.Row(append(m.cells(sum.row()), "in "+more(len(others)))...)
	}
	_, err := t.WriteTo(w)
	return err
}

// leastText is how many columns the text of a row has at least.
const leastText = 20

// figureWidth returns how many columns a table takes for the figures of rows.
func (m *Model) figureWidth(rows []Row) (n int) {
	widths := make([]int, len(m.headings()))
	grow := func(cells []string) {
		for i, cell := range cells {
			widths[i] = max(widths[i], width(cell))
		}
	}
	grow(m.headings())
	for i := range rows {
		grow(m.cells(&rows[i]))
	}
	for _, w := range widths {
		n += w + len("  ")
	}
	return n
}

// row returns the sums as a row.
func (t *Totals) row() *Row {
	return &Row{Live: t.Live, Growth: t.Growth, Rate: t.Rate, Calls: t.Calls, Since: t.Since}
}

// more returns how many rows are left out.
func more(n int) string {
	if n == 1 {
		return "1 other row"
	}
	return fmt.Sprintf("%d other rows", n)
}

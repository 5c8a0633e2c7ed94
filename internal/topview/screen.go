package topview

import (
	"fmt"
	"strings"
)

// Style is how a terminal shows a line. No meaning depends on it alone.
type Style int

// The styles of lines.
const (
	Plain    Style = iota
	Title          // names what is shown
	Heading        // of columns
	Selected       // the row of the cursor, which begins with >
	Warning        // what makes figures uncertain
)

// Line is a line of a screen.
type Line struct {
	Text  string
	Style Style
}

// screen is the state of the terminal interface.
type screen struct {
	cursor  int    // row that is selected
	top     int    // first row that is shown
	page    int    // rows that the last screen had room for
	opened  bool   // the selected row is shown in detail
	scroll  int    // first line of the detail that is shown
	help    bool   // the keys are shown
	frozen  bool   // snapshots are ignored
	last    bool   // the last snapshot has been taken
	typing  bool   // the filter is being typed
	message string // about the last key; empty for none
}

// clamp keeps the cursor in the rows.
func (s *screen) clamp(rows int) {
	s.cursor = max(0, min(s.cursor, rows-1))
}

// View returns the screen: height lines of at most width columns.
func (m *Model) View(width, height int) []Line {
	width, height = max(width, 1), max(height, 1)
	var lines []Line
	switch {
	case m.now == nil:
		lines = []Line{{Text: "waiting for the first second", Style: Title}}
	case m.screen.help:
		lines = keyLines()
	case m.screen.opened && len(m.all) > 0:
		lines = m.detailView(width, height-1)
	default:
		lines = m.listView(width, height-1)
	}
	lines = lines[:min(len(lines), height-1)]
	for len(lines) < height-1 {
		lines = append(lines, Line{})
	}
	lines = append(lines, Line{Text: m.footer(), Style: Heading})
	for i := range lines {
		lines[i].Text = shorten(lines[i].Text, width)
	}
	return lines
}

// top returns the lines about the processes.
func (m *Model) top() []Line {
	header := m.header()
	lines := make([]Line, len(header))
	for i, text := range header {
		lines[i].Text = text
		switch {
		case i == 0:
			lines[i].Style = Title
		case i > 2:
			lines[i].Style = Warning
		}
	}
	return lines
}

// listView returns the rows, as far as there is room.
func (m *Model) listView(width, height int) []Line {
	lines := m.top()
	leading := m.suspects()
	for _, text := range leading.lines(width) {
		lines = append(lines, Line{Text: text, Style: Title})
	}
	lines = append(lines, Line{Text: m.state()})
	c := columnsFor(width, m.order)
	lines = append(lines, Line{Text: "  " + c.line(m.headings(), "", titles[m.by]), Style: Heading})
	m.screen.page = max(1, height-len(lines)-1)
	s := &m.screen
	s.top = max(0, min(s.top, s.cursor, len(m.all)-s.page))
	s.top = max(s.top, s.cursor-s.page+1)
	shown := m.all[s.top:min(len(m.all), s.top+s.page)]
	for i := range shown {
		r := &shown[i]
		line := Line{Text: "  "}
		if s.top+i == s.cursor {
			line = Line{Text: "> ", Style: Selected}
		}
		line.Text += c.line(m.cells(r), spark(m.bars(r), c.spark, m.plain), r.fit(width-2-c.width()))
		lines = append(lines, line)
	}
	if len(m.all) == 0 {
		text := "  no call has been recorded yet"
		if m.filter != "" || m.mark != nil {
			text = "  no row is left: / changes the filter, M removes the mark"
		}
		lines = append(lines, Line{Text: text})
	}
	if rest := len(m.all) - len(shown); rest > 0 {
		lines = append(lines, Line{Text: "  " + more(rest)})
	}
	return lines
}

// state returns the line about how the rows are made.
func (m *Model) state() string {
	text := fmt.Sprintf("by %s, sorted by %s", m.by, m.order)
	if m.filter != "" {
		text += fmt.Sprintf(", with %q", m.filter)
	}
	if m.mark != nil {
		text += ", changes since the mark at " + clock(m.mark.at.Elapsed)
	}
	if m.screen.last {
		text += ", ENDED: these are the last figures"
	} else if m.screen.frozen {
		text += ", FROZEN at " + clock(m.now.Elapsed)
	}
	return text
}

// footer returns the last line: the keys, what is typed, or what a key has done.
func (m *Model) footer() string {
	switch s := &m.screen; {
	case s.typing:
		return "filter: " + m.filter + "_   enter keeps it, esc drops it"
	case s.message != "":
		return s.message
	case s.help, s.opened:
		return "esc back  up/down scroll  q quit"
	}
	return "q quit  enter stack  s sort  b group  / filter  space freeze  m mark  ? all keys"
}

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

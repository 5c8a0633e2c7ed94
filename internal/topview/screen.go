package topview

import (
	"strings"

	"rtrace-bpf/internal/printable"
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
	plain   bool   // sparklines and gaps of ASCII characters
	cursor  int    // row that is selected
	top     int    // first row that is shown
	page    int    // rows that the last screen had room for
	opened  bool   // the selected row is shown in detail
	scroll  int    // first line of the detail that is shown
	help    bool   // the keys are shown
	frozen  bool   // snapshots are ignored
	typing  bool   // the filter is being typed
	message string // about the last key; empty for none
}

// clamp keeps the cursor in the rows.
func (s *screen) clamp(rows int) {
	s.cursor = max(0, min(s.cursor, rows-1))
}

// move moves the cursor by a number of rows, or scrolls the detail by as many lines.
func (s *screen) move(by, rows int) {
	if s.opened {
		s.scroll = max(0, min(s.scroll+by, everyRow))
		return
	}
	s.cursor += by
	s.clamp(rows)
}

// waiting returns the screen before the first snapshot.
func (s *screen) waiting(width, height int) []Line {
	return s.framed([]Line{{Text: "waiting for the first second", Style: Title}}, "", width, height)
}

// draw returns the screen: height lines of at most width columns.
func (s *screen) draw(l *listing, width, height int) []Line {
	width, height = max(width, 1), max(height, 1)
	var lines []Line
	switch {
	case s.help:
		lines = keyLines()
	case s.opened && len(l.rows) > 0:
		lines = s.detail(l, width, height-1)
	default:
		lines = s.list(l, width, height-1)
	}
	return s.framed(lines, l.query.filter, width, height)
}

// framed returns lines with the last line of the screen below, all as long as the screen is wide
// at most.
func (s *screen) framed(lines []Line, filter string, width, height int) []Line {
	width, height = max(width, 1), max(height, 1)
	lines = lines[:min(len(lines), height-1)]
	for len(lines) < height-1 {
		lines = append(lines, Line{})
	}
	lines = append(lines, Line{Text: s.footer(filter), Style: Heading})
	for i := range lines {
		lines[i].Text = shorten(lines[i].Text, width)
		if s.plain {
			lines[i].Text = strings.ReplaceAll(lines[i].Text, gap, plainGap)
		}
	}
	return lines
}

// detail returns what is known about the selected row, as far as there is room.
func (s *screen) detail(l *listing, columns, height int) []Line {
	all := l.detail(&l.rows[s.cursor], columns)
	s.page = max(1, height)
	s.scroll = max(0, min(s.scroll, len(all)-height))
	return all[s.scroll:]
}

// lead returns the lines that precede the rows.
func (s *screen) lead(l *listing, width int) (lines []Line) {
	for i, text := range l.header() {
		line := Line{Text: cut(text, width)} // what matters most comes first
		switch {
		case i == 0:
			line.Style = Title
		case i > 2:
			line.Style = Warning
		}
		lines = append(lines, line)
	}
	if paths := l.snapshot.Traces; len(paths) > 0 {
		text := "writing " + printable.Name(strings.Join(paths, ", ")) + "; t ends it"
		lines = append(lines, Line{Text: cut(text, width), Style: Title})
	}
	for _, text := range l.suspects.lines(width) {
		lines = append(lines, Line{Text: text, Style: Title})
	}
	return lines
}

// state returns the line about the order and the choice of rows. A low screen has it only for what
// the columns do not show.
func (s *screen) state(l *listing, height int) (lines []Line) {
	q := l.query
	if height < low && q.filter == "" && q.mark == nil && !s.frozen && !l.last {
		return nil
	}
	return []Line{{Text: l.state(s.frozen)}}
}

// list returns the rows, as far as there is room.
func (s *screen) list(l *listing, width, height int) []Line {
	lines := append(s.lead(l, width), s.state(l, height)...)
	c := columnsFor(width, l.query.order)
	lines = append(lines, Line{Text: "  " + c.line(l.headings(), "", titles[l.query.by]), Style: Heading})
	s.page = max(1, height-len(lines)-1)
	s.top = max(0, min(s.top, s.cursor, len(l.rows)-s.page))
	s.top = max(s.top, s.cursor-s.page+1)
	shown := l.rows[s.top:min(len(l.rows), s.top+s.page)]
	for i := range shown {
		r := &shown[i]
		line := Line{Text: "  "}
		if s.top+i == s.cursor {
			line = Line{Text: "> ", Style: Selected}
		}
		line.Text += c.line(l.cells(r), spark(l.history.bars(r), c.spark, s.plain), r.fit(width-2-c.width()))
		lines = append(lines, line)
	}
	if len(l.rows) == 0 {
		text := "  no call has been recorded yet"
		if l.query.filter != "" || l.query.mark != nil {
			text = "  no row is left: / changes the filter, M removes the mark"
		}
		lines = append(lines, Line{Text: text})
	}
	if rest := len(l.rows) - len(shown); rest > 0 {
		lines = append(lines, Line{Text: "  " + more(rest)})
	}
	return lines
}

// footer returns the last line: the keys, what is typed, or what a key has done.
func (s *screen) footer(filter string) string {
	switch {
	case s.typing:
		return "filter: " + filter + "_   enter keeps it, esc drops it"
	case s.message != "":
		return s.message
	case s.help, s.opened:
		return "esc back  up/down scroll  q quit"
	}
	return "q quit  enter stack  s sort  b group  / filter  space freeze  m mark  ? all keys"
}

package topview

import "rtrace-bpf/internal/printable"

// Action is what a key asks for that a Model cannot do itself.
type Action int

// The actions of keys.
const (
	Nothing Action = iota
	Quit
	SaveReport  // write the table
	SaveJSON    // write the table as JSON
	SaveProfile // write a profile for pprof
	Trace       // begin to write a trace, or complete it
	Suspend     // leave the terminal to the shell
)

// command is what a key does to a view.
type command func(m *Model) Action

// commands are the commands of keys, by their names.
var commands = map[string]command{
	"q":   func(*Model) Action { return Quit },
	"w":   func(*Model) Action { return SaveReport },
	"J":   func(*Model) Action { return SaveJSON },
	"p":   func(*Model) Action { return SaveProfile },
	"t":   func(*Model) Action { return Trace },
	"?":   shows(func(s *screen) { s.help = true }),
	"esc": (*Model).back,

	"space": shows(func(s *screen) { s.frozen = !s.frozen }),
	"enter": (*Model).open,
	"up":    moves(func(*screen) int { return -1 }),
	"down":  moves(func(*screen) int { return 1 }),
	"pgup":  moves(func(s *screen) int { return -s.page }), "pgdown": moves(func(s *screen) int { return s.page }),
	"home": moves(func(*screen) int { return -everyRow }), "end": moves(func(*screen) int { return everyRow }),

	"s": changes(func(m *Model) { m.query.order = Order(after(Orders(), string(m.query.order))) }),
	"b": changes(func(m *Model) {
		m.group(By(after(Groupings(), string(m.query.by))))
		m.screen.cursor, m.screen.opened = 0, false
	}),
	"m": changes(func(m *Model) {
		m.query.mark = markOf(m.now, m.source)
		m.screen.message = "mark set: rows show what changed since now; M removes it"
	}),
	"M": changes(func(m *Model) { m.query.mark = nil }),
	"/": shows(func(s *screen) { s.typing, s.opened = true, false }),
}

// otherNames are further names of keys.
var otherNames = map[string]string{
	" ": "space", "backspace": "esc", "left": "esc", "h": "esc", "right": "enter", "l": "enter",
	"k": "up", "j": "down", "g": "home", "G": "end", "shift+g": "end", "shift+j": "J", "shift+m": "M",
}

// everyRow is more rows than there can be.
const everyRow = 1 << 30

// shows returns a command that changes what a screen shows.
func shows(do func(*screen)) command {
	return func(m *Model) Action {
		do(&m.screen)
		return Nothing
	}
}

// moves returns a command that moves the cursor by a number of rows.
func moves(by func(*screen) int) command {
	return func(m *Model) Action {
		m.screen.move(by(&m.screen), len(m.list.rows))
		return Nothing
	}
}

// changes returns a command that changes which rows there are.
func changes(do func(*Model)) command {
	return func(m *Model) Action {
		do(m)
		m.Refresh()
		return Nothing
	}
}

// open shows the selected row in detail.
func (m *Model) open() Action {
	m.screen.opened, m.screen.scroll = len(m.list.rows) > 0, 0
	return Nothing
}

// back leaves the detail, or else removes the filter.
func (m *Model) back() Action {
	switch {
	case m.screen.opened:
		m.screen.opened = false
	case m.query.filter != "":
		m.query.filter = ""
		m.Refresh()
	}
	return Nothing
}

// Press takes a key: its name, such as "up", "enter" or "ctrl+c", and the text that it types,
// which is empty for keys without one.
func (m *Model) Press(name, text string) Action {
	s := &m.screen
	s.message = ""
	switch {
	case name == "ctrl+c":
		return Quit
	case name == "ctrl+z":
		return Suspend
	case s.typing:
		m.typed(name, text)
		return Nothing
	case s.help:
		s.help = false
		return Nothing
	case m.now == nil && name != "q":
		return Nothing // there is nothing to show yet
	}
	if other, ok := otherNames[name]; ok {
		name = other
	}
	if do := commands[name]; do != nil {
		return do(m)
	}
	return Nothing
}

// typed takes a key while the filter is being typed.
func (m *Model) typed(name, text string) {
	q := &m.query
	switch name {
	case "enter":
		m.screen.typing = false
	case "esc":
		m.screen.typing, q.filter = false, ""
	case "backspace":
		if all := []rune(q.filter); len(all) > 0 {
			q.filter = string(all[:len(all)-1])
		}
	default:
		const most = 100 // characters of a filter
		if len(q.filter) < most {
			q.filter += printable.Name(text)
		}
	}
	m.screen.cursor = 0
	m.Refresh()
}

// keyLines returns the screen about keys.
func keyLines() []Line {
	lines := []Line{{Text: "Keys", Style: Title}}
	for _, k := range []struct{ keys, does string }{
		{"up, down, k, j", "select a row; pgup, pgdown, home and end go further"},
		{"enter, esc", "show stack, sizes, lifetimes and threads of a row; go back"},
		{"s", "sort by live, growth, rate or count"},
		{"b", "group by site, function, file, library, thread or size"},
		{"/", "only show rows with a text; esc removes it"},
		{"space", "freeze the figures, and go on"},
		{"m, M", "set a mark: show only what changed since; remove it"},
		{"w", "write the table with all rows to a file"},
		{"J", "write it as JSON"},
		{"p", "write a profile for go tool pprof"},
		{"t", "write a trace of all calls from now on; end it"},
		{"?", "show these keys"},
		{"q, Ctrl-C", "quit, and print the table once more"},
		{"Ctrl-Z", "go back to the shell until fg; calls may be lost meanwhile"},
	} {
		lines = append(lines, Line{Text: "  " + k.keys + spaces(18-len(k.keys)) + k.does})
	}
	return append(lines, Line{}, Line{Text: "live and blocks: allocated since top began, and not freed."},
		Line{Text: "growth/s: change of live bytes per second, over the last minute."},
		Line{Text: "alloc/s, calls/s: allocated per second, since the last refresh."},
		Line{Text: "The bars are live bytes at the last refreshes, the newest on the right."})
}

func spaces(n int) string {
	const some = "                              "
	return some[:max(0, min(n, len(some)))]
}

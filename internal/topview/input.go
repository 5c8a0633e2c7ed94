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
)

// keyLines returns the screen about keys.
func keyLines() []Line {
	lines := []Line{{Text: "Keys", Style: Title}}
	for _, k := range []struct{ keys, does string }{
		{"up, down, k, j", "select a row; pgup, pgdown, home and end go further"},
		{"enter, esc", "show the stack, sizes, lifetimes and threads of the row; go back"},
		{"s", "sort by the next figure: live, growth, rate, count"},
		{"b", "group by the next one: site, function, file, library, thread, size"},
		{"/", "only show rows with a text; esc removes it"},
		{"space", "freeze the figures, and go on"},
		{"m, M", "set a mark: show only what changed since; remove it"},
		{"w", "write the table with all rows to a file"},
		{"J", "write it as JSON"},
		{"p", "write a profile for go tool pprof"},
		{"?", "show these keys"},
		{"q, Ctrl-C", "quit, and print the table once more"},
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

// Press takes a key: its name, such as "up", "enter" or "ctrl+c", and the text that it types,
// which is empty for keys without one.
func (m *Model) Press(name, text string) Action {
	s := &m.screen
	s.message = ""
	if name == "ctrl+c" {
		return Quit
	}
	if s.typing {
		m.typed(name, text)
		return Nothing
	}
	if m.now == nil || s.help {
		return m.pressOutside(name)
	}
	switch name {
	case "q":
		return Quit
	case "w":
		return SaveReport
	case "J", "shift+j":
		return SaveJSON
	case "p":
		return SaveProfile
	case "?":
		s.help = true
	case "space", " ":
		s.frozen = !s.frozen
	case "esc", "backspace", "left", "h":
		m.back()
	case "enter", "right", "l":
		s.opened, s.scroll = len(m.all) > 0, 0
	default:
		m.pressRows(name)
	}
	return Nothing
}

// pressOutside takes a key where there are no rows.
func (m *Model) pressOutside(name string) Action {
	if name == "q" {
		if m.screen.help {
			m.screen.help = false
			return Nothing
		}
		return Quit
	}
	m.screen.help = false
	return Nothing
}

// back leaves the detail, or else removes the filter.
func (m *Model) back() {
	switch {
	case m.screen.opened:
		m.screen.opened = false
	case m.filter != "":
		m.filter = ""
		m.refresh()
	}
}

// pressRows takes a key that moves, or changes which rows there are.
func (m *Model) pressRows(name string) {
	s := &m.screen
	steps := map[string]int{
		"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -s.page, "pgdown": s.page, "home": -len(m.all) - 1000, "end": len(m.all) + 1000, "g": -len(m.all) - 1000, "G": len(m.all) + 1000, "shift+g": len(m.all) + 1000,
	}
	if by, ok := steps[name]; ok {
		if s.opened {
			s.scroll = max(0, s.scroll+by)
			return
		}
		s.cursor += by
		s.clamp(len(m.all))
		return
	}
	switch name {
	case "s":
		m.order = Order(after(Orders(), string(m.order)))
	case "b":
		m.by, m.labels = By(after(Groupings(), string(m.by))), nil
		s.cursor, s.opened = 0, false
		m.prepare()
	case "m":
		m.setMark()
		s.message = "mark set: rows show what changed since now; M removes it"
	case "M", "shift+m":
		m.mark = nil
	case "/":
		s.typing, s.opened = true, false
		return
	default:
		return
	}
	m.refresh()
}

// typed takes a key while the filter is being typed.
func (m *Model) typed(name, text string) {
	switch name {
	case "enter":
		m.screen.typing = false
	case "esc":
		m.screen.typing, m.filter = false, ""
	case "backspace":
		if all := []rune(m.filter); len(all) > 0 {
			m.filter = string(all[:len(all)-1])
		}
	default:
		const most = 100 // characters of a filter
		if len(m.filter) < most {
			m.filter += printable.Name(text)
		}
	}
	m.screen.cursor = 0
	m.refresh()
}

// Tell shows a message until the next key.
func (m *Model) Tell(text string) { m.screen.message = printable.Name(text) }

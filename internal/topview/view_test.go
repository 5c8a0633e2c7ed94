package topview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/trace"
)

// shown returns a screen as text, without blanks at the ends of lines.
func shown(m *Model, width, height int) string {
	var b strings.Builder
	for _, line := range m.View(width, height) {
		b.WriteString(strings.TrimRight(line.Text, " ") + "\n")
	}
	return b.String()
}

// press presses keys, which are separated by blanks.
func press(m *Model, keys string) (last Action) {
	for key := range strings.FieldsSeq(keys) {
		text := ""
		if len(key) == 1 {
			text = key
		}
		last = m.Press(key, text)
	}
	return last
}

func TestView(t *testing.T) {
	_, m := busy(Options{By: BySite, Order: OrderLive})
	press(m, "down")
	want := `process 4711 (server), traced for 00:00:02
RSS 64.0 MiB  live 1.0 MiB in 33 blocks  allocates 38.9 KiB/s in 322 calls/s
tracing costs 4.0 % of its CPU time (1.04 times slower)  lost 0  paused 0
by site, sorted by live
       *live   blocks     growth/s           call site
     1.0 MiB        1          0 B        ██ libz.so.1+0x1234
>   30.0 KiB       30    +20.0 KiB        ▃█ cache_insert (cache.c:12)
       200 B        2       +200 B         █ evil\x1b[31m\u202…0aname (\x07.c:1)
         0 B        0          0 B           parse<…>(…) (parse.cc:7)

q quit  enter stack  s sort  b group  / filter  space freeze  m mark  ? all keys
`
	if d := cmp.Diff(want, shown(m, 80, 11)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	wide := shown(m, 200, 60)
	row := ">   30.0 KiB       30    +20.0 KiB   20.0 KiB       20                              ▃█ cache_insert (cache.c:12) < handle_request < main\n"
	if !strings.Contains(wide, row) || strings.Count(wide, "\n") != 60 {
		t.Errorf("no %q in\n%s", row, wide)
	}
	if got := shown(m, 80, 8); !strings.Contains(got, "  2 other rows\n") && !strings.Contains(got, "  3 other rows\n") {
		t.Errorf("rows are left out, and nothing says how many:\n%s", got)
	}
}

// A narrow and low screen has room for call sites: it leaves out sparklines and most figures. Without
// UTF-8, it has only ASCII characters.
func TestNarrowView(t *testing.T) {
	_, m := busy(Options{By: BySite, Order: OrderLive, Plain: true})
	want := `process 4711 (server), traced for 00:00~
RSS 64.0 MiB  live 1.0 MiB in 33 blocks~
tracing costs 4.0 % of its CPU time (1.~
       *live  call site
>    1.0 MiB  libz.so.1+0x1234
    30.0 KiB  cache_insert (cache.c:12)
       200 B  evil\x1b[31m~me (\x07.c:1)
         0 B  parse<~>(~) (parse.cc:7)

q quit  enter stack~  m mark  ? all keys
`
	if d := cmp.Diff(want, shown(m, 40, 10)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for order, row := range map[Order]string{OrderGrowth: "\n>    +20.0 KiB  cache_inser…", OrderCount: "\n>       30  cache_insert", OrderRate: "\n>   20.0 KiB  cache_insert"} {
		_, m := busy(Options{By: BySite, Order: order})
		if got := shown(m, 40, 10); !strings.Contains(got, row) {
			t.Errorf("sorted by %s, no %q in\n%s", order, row, got)
		}
	}
	press(m, "space")
	if got := shown(m, 60, 9); !strings.Contains(got, "FROZEN at") || !strings.Contains(got, "1.0 MiB        1          0 B  libz.so.1+0x1234\n") {
		t.Errorf("frozen, 60 columns:\n%s", got)
	}
}

func TestDetailView(t *testing.T) {
	_, m := busy(Options{By: BySite, Order: OrderLive})
	press(m, "down enter")
	want := `cache_insert (cache.c:12)
in /bin/server
live       30.0 KiB in 30 blocks
allocated  30.0 KiB in 30 blocks
freed      0 B in 0 blocks
growth     +20.0 KiB/s over the last minute
allocates  20.0 KiB/s in 20 calls/s
the oldest live block is 00:00:01 old

stack, the innermost frame first
  malloc
  cache_insert() at cache.c:12
  handle_request
  main

sizes
  1 KiB to below 2 KiB             30 blocks, 30 live

lifetimes of freed blocks
  none was freed

threads
  thread 1                         30 blocks, 30.0 KiB live

esc back  up/down scroll  q quit
`
	if d := cmp.Diff(want, shown(m, 80, 25)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	press(m, "down down")
	if got := shown(m, 80, 10); !strings.HasPrefix(got, "live       30.0 KiB") {
		t.Errorf("scrolled:\n%s", got)
	}
	press(m, "end")
	if got := shown(m, 80, 10); !strings.HasPrefix(strings.Split(got, "\n")[8], "  thread 1") {
		t.Errorf("at the end:\n%s", got)
	}
	press(m, "esc b b b enter") // a library with two call sites
	press(m, "esc down enter")
	if got := shown(m, 80, 40); !strings.Contains(got, "2 stacks; the one with most live bytes:") || !strings.Contains(got, "cache_insert() at cache.c:12") {
		t.Errorf("a library:\n%s", got)
	}
}

// The screen about keys fits into 80 columns.
func TestKeysView(t *testing.T) {
	_, m := busy(Options{By: BySite, Order: OrderLive})
	press(m, "?")
	if got := shown(m, 80, 24); strings.Contains(got, gap) || !strings.Contains(got, "quit, and print the table once more") || !strings.Contains(got, "Ctrl-Z ") {
		t.Errorf("got\n%s", got)
	}
	for _, keys := range []string{"", "/ x"} {
		press(m, keys)
		if press(m, "ctrl+z") != Suspend {
			t.Errorf("Ctrl-Z after %q does not suspend", keys)
		}
	}
}

// Each screen has as many lines as the terminal, and no line is longer, whatever is shown.
func TestScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 60}, {40, 10}, {20, 5}, {1, 1}} {
		for _, keys := range []string{"", "enter", "?", "b", "b b b b", "b b b b b", "/ x", "m", "space", "s s", "end", "pgdown pgdown up home"} {
			s, m := busy(Options{By: BySite, Order: OrderLive})
			for i := range 100 {
				s.places[4+i] = Place{Function: fmt.Sprintf("std::map<std::vector<long>, f<%d>>::insert(日本語, int)", i), Library: "/a/long/path/to/a/library/lib.so.1", File: "日.c"}
				s.alloc(4+i, 1, i+1, uint64(10+i))
			}
			s.Add(&trace.Record{Kind: trace.KindLost, PID: 4711, Lost: trace.Lost{Count: 7, Reason: "ring full"}})
			m.Update(s.tick(), false)
			press(m, keys)
			lines := m.View(size[0], size[1])
			if len(lines) != size[1] {
				t.Errorf("%v, %q: %d lines", size, keys, len(lines))
			}
			for _, line := range lines {
				if width(line.Text) > size[0] {
					t.Errorf("%v, %q: %d columns: %s", size, keys, width(line.Text), line.Text)
				}
				if strings.ContainsAny(line.Text, "\x1b\n\u202e\a") {
					t.Errorf("%v, %q: %q", size, keys, line.Text)
				}
			}
			if selected := countOf(lines, Selected); size[1] > 8 && (keys == "" || keys == "end") && selected != 1 {
				t.Errorf("%v, %q: %d selected rows", size, keys, selected)
			}
		}
	}
	m := New(newScene(), Options{By: BySite, Order: OrderLive})
	if got := shown(m, 80, 3); !strings.HasPrefix(got, "waiting for the first second\n") || m.Press("q", "q") != Quit {
		t.Errorf("before the first snapshot:\n%s", got)
	}
}

func countOf(lines []Line, style Style) (n int) {
	for _, line := range lines {
		if line.Style == style {
			n++
		}
	}
	return n
}

// The mark hides what has not changed since.
func TestMark(t *testing.T) {
	s, m := busy(Options{By: BySite, Order: OrderLive})
	press(m, "m")
	if got := shown(m, 80, 11); !strings.Contains(got, "changes since the mark at 00:00:02\n") || !strings.Contains(got, "no row is left") || !strings.Contains(got, "mark set: ") {
		t.Errorf("right after the mark:\n%s", got)
	}
	s.free(s.alloc(1, 2, 5, 64))
	s.alloc(0, 1, 3, 1024)
	m.Update(s.tick(), false)
	got := shown(m, 80, 11)
	for _, want := range []string{">   +3.0 KiB       +3 ", "cache_insert", "         0 B        0          0 B ", "parse<"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if len(m.Rows()) != 2 {
		t.Errorf("%q", texts(m))
	}
	for _, by := range []string{"function", "file", "library", "thread", "size"} {
		press(m, "b")
		if rows := m.Rows(); len(rows) == 0 || rows[0].Since != (Change{3, 3072}) {
			t.Errorf("%s: %q", by, texts(m))
		}
	}
	press(m, "M")
	if got := shown(m, 80, 11); strings.Contains(got, "since the mark") {
		t.Errorf("without the mark:\n%s", got)
	}
}

// A frozen view ignores figures, except the last ones.
func TestFreeze(t *testing.T) {
	s, m := busy(Options{By: BySite, Order: OrderLive})
	press(m, "space")
	before := shown(m, 80, 11)
	s.alloc(0, 1, 100, 1024)
	m.Update(s.tick(), false)
	if after := shown(m, 80, 11); after != before || !strings.Contains(after, "FROZEN at 00:00:02") {
		t.Errorf("before\n%safter\n%s", before, after)
	}
	m.Update(s.tick(), true)
	if got := shown(m, 80, 11); !strings.Contains(got, "ENDED: these are the last figures") || !strings.Contains(got, "130.0 KiB") || !m.Ended() {
		t.Errorf("at the end:\n%s", got)
	}
}

func TestTyping(t *testing.T) {
	_, m := busy(Options{By: BySite, Order: OrderLive})
	press(m, "/ q z z backspace backspace backspace c a c")
	m.Press("", "h\x1b")
	m.Press("backspace", "")
	m.Press("backspace", "")
	m.Press("backspace", "")
	m.Press("backspace", "") // \x1b is four characters
	if got := shown(m, 80, 11); !strings.Contains(got, "filter: cach_") || len(m.Rows()) != 1 {
		t.Errorf("%q\n%s", texts(m), got)
	}
	press(m, "enter s")
	if got := shown(m, 80, 11); !strings.Contains(got, `by site, sorted by growth, with "cach"`) {
		t.Errorf("kept:\n%s", got)
	}
	press(m, "esc")
	if len(m.Rows()) != 4 {
		t.Errorf("removed: %q", texts(m))
	}
	press(m, "/ x x esc")
	if len(m.Rows()) != 4 {
		t.Errorf("dropped: %q", texts(m))
	}
}

// Keys that a Model cannot carry out are returned, and every key of the help does something.
func TestKeys(t *testing.T) {
	for key, want := range map[string]Action{"q": Quit, "ctrl+c": Quit, "w": SaveReport, "J": SaveJSON, "p": SaveProfile, "t": Trace, "x": Nothing, "up": Nothing} {
		_, m := busy(Options{By: BySite, Order: OrderLive})
		if got := press(m, key); got != want {
			t.Errorf("%s: %v", key, got)
		}
	}
	for _, key := range []string{"down", "enter", "s", "b", "/", "space", "m", "?"} {
		_, m := busy(Options{By: BySite, Order: OrderLive})
		before := shown(m, 120, 30)
		if press(m, key); shown(m, 120, 30) == before {
			t.Errorf("%s changes nothing", key)
		}
	}
	_, m := busy(Options{By: BySite, Order: OrderLive})
	if press(m, "? q") != Nothing || press(m, "/ q enter") != Nothing || press(m, "ctrl+c") != Quit {
		t.Error("q leaves the help first, and is a letter of a filter")
	}
	m.Tell("wrote a\x1bb")
	if got := shown(m, 80, 11); !strings.Contains(got, `wrote a\x1bb`) {
		t.Errorf("a message:\n%s", got)
	}
}

// Threads and sizes have a history from when rows are made of them.
func TestLateHistory(t *testing.T) {
	s, m := busy(Options{By: BySite, Order: OrderLive})
	press(m, "b b b b")
	for i := range m.Rows() {
		if r := m.Rows()[i]; r.Growth != 0 || r.Calls != 0 {
			t.Errorf("%+v", r)
		}
	}
	s.alloc(0, 1, 2, 1000)
	m.Update(s.tick(), false)
	if r := m.Rows()[0]; r.Text != "thread 1" || r.Calls != 2 || r.Growth != 1000 {
		t.Errorf("%+v", r)
	}
	press(m, "b b b b b b")
	if r := m.Rows()[0]; r.Calls != 0 {
		t.Errorf("a second time: %+v", r)
	}
}

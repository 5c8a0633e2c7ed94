package topview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// frames returns frames from texts such as "deflate+0x9f" or "main+0x20 main.c:7", the innermost first.
func frames(all ...string) (out []Frame) {
	for _, text := range all {
		offset, line, _ := strings.Cut(text, " ")
		function, _, _ := strings.Cut(offset, "+")
		out = append(out, Frame{Function: function, Line: line, Offset: offset})
	}
	return out
}

// alike returns the texts of rows in width columns, by call site. All have the same function.
func alike(width int, file string, at int, stacks ...[]Frame) []string {
	s := newScene()
	s.places = make(map[int]Place)
	for site, stack := range stacks {
		p := Place{Function: stack[at].Function, File: file, Line: 12, Frames: stack, At: at}
		for _, f := range stack[at+1:] {
			p.Callers = append(p.Callers, f.Function)
		}
		s.places[site] = p
		s.alloc(site, 1, 1, 100)
	}
	m := New(s, Options{By: BySite, Order: OrderLive})
	m.Update(s.tick(), false)
	texts := make([]string, len(stacks))
	for i := range m.Rows() {
		r := &m.Rows()[i]
		texts[r.Sites[0]] = r.fit(width)
	}
	return texts
}

func TestRowsWithTheSameText(t *testing.T) {
	for name, c := range map[string]struct {
		file  string
		at    int
		width int
		of    [][]Frame
		want  []string
	}{
		"offsets": {
			of:   [][]Frame{frames("deflate+0x9f", "compress+0x10", "main+0x1"), frames("deflate+0xb0", "compress+0x10", "main+0x1")},
			want: []string{"deflate+0x9f < compress < main", "deflate+0xb0 < compress < main"},
		},
		"a line with two calls": {
			file: "/src/deflate.c", of: [][]Frame{frames("deflate+0x9f deflate.c:12", "main+0x1"), frames("deflate+0xb0 deflate.c:12", "main+0x1")},
			want: []string{"deflate (deflate.c:12) +0x9f < main", "deflate (deflate.c:12) +0xb0 < main"},
		},
		"a caller's name": {
			of:   [][]Frame{frames("alloc+0x1", "wrap+0x2", "read_all+0x3", "main+0x4"), frames("alloc+0x1", "wrap+0x2", "write_all+0x3", "main+0x4")},
			want: []string{"alloc < … < read_all", "alloc < … < write_all"},
		},
		"a caller's line": {
			of:   [][]Frame{frames("alloc+0x1", "main+0x4 main.c:7"), frames("alloc+0x1", "main+0x9 main.c:8")},
			want: []string{"alloc < main (main.c:7)", "alloc < main (main.c:8)"},
		},
		"a caller's offset": {
			of:   [][]Frame{frames("alloc+0x1", "main+0x4"), frames("alloc+0x1", "main+0x9")},
			want: []string{"alloc < main+0x4", "alloc < main+0x9"},
		},
		"inside": {
			at: 1, of: [][]Frame{frames("grow+0x5", "main+0x4"), frames("grow+0x7", "main+0x4")},
			want: []string{"main through grow+0x5", "main through grow+0x7"},
		},
		"two steps": {
			of:   [][]Frame{frames("f+0x1", "g+0x1"), frames("f+0x2", "g+0x1"), frames("f+0x2", "h+0x1")},
			want: []string{"f+0x1 < g", "f+0x2 < g", "f+0x2 < h"},
		},
		"one ends": {
			of:   [][]Frame{frames("f+0x1", "g+0x1"), frames("f+0x1")},
			want: []string{"f < g", "f"},
		},
		"narrow": {
			width: 30, of: [][]Frame{frames("a_function_with_a_long_name+0x9f"), frames("a_function_with_a_long_name+0xb0")},
			want: []string{"a_function_w…_a_long_name+0x9f", "a_function_w…_a_long_name+0xb0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			width := c.width
			if width == 0 {
				width = 80
			}
			if d := cmp.Diff(c.want, alike(width, c.file, c.at, c.of...)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// Stacks that differ only in their process have its number.
func TestRowsOfTwoProcesses(t *testing.T) {
	s := newScene()
	s.places = map[int]Place{0: {Function: "f", Frames: frames("f+0x1")}, 1: {Function: "f", Frames: frames("f+0x1")}}
	s.alloc(0, 1, 2, 100)
	s.alloc(1, 1, 1, 100)
	x := s.tick()
	x.Sites[1].PID = 4712
	m := New(s, Options{By: BySite, Order: OrderLive})
	m.Update(x, false)
	if got, want := fmt.Sprint(m.Rows()[0].label(), "; ", m.Rows()[1].label()), "f in process 4711; f in process 4712"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

package heaptrack

import (
	"fmt"
	"io"
	"slices"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/stacks"
)

// tables numbers what lines refer to, from 1, and writes it when it is new.
type tables struct {
	strings map[string]int
	places  map[string]int // by the text of their line
	nodes   map[node]int

	locations []stacks.Location // of the stack that is looked up
}

// node is a place in the tree of stacks.
type node struct{ place, parent int }

func newTables() tables {
	return tables{strings: make(map[string]int), places: make(map[string]int), nodes: make(map[node]int)}
}

// stack returns the number of the node of the innermost one of the locations, or
// 0 if there are none.
func (t *tables) stack(w io.Writer) int {
	parent := 0
	for i := range slices.Backward(t.locations) {
		key := node{t.place(w, &t.locations[i]), parent}
		n, ok := t.nodes[key]
		if !ok {
			n = len(t.nodes) + 1
			t.nodes[key] = n
			fmt.Fprintf(w, "t %x %x\n", key.place, key.parent)
		}
		parent = n
	}
	return parent
}

// place returns the number of a location. Its functions follow the address and
// the module, the innermost first.
func (t *tables) place(w io.Writer, l *stacks.Location) int {
	text := fmt.Appendf(nil, "i %x %x", l.Addr, t.text(w, l.Mapping.Path))
	lines := l.Lines
	if len(lines) == 0 && (l.Addr == 0 || l.Mapping.Path == "") {
		lines = []stacks.Line{{Function: l.Name()}}
	}
	for i := range lines {
		name := lines[i].Function
		if name == "" {
			name = sites.Unknown
		}
		text = fmt.Appendf(text, " %x %x %x", t.text(w, name), t.text(w, lines[i].File), lines[i].Line)
	}
	n, ok := t.places[string(text)]
	if !ok {
		n = len(t.places) + 1
		t.places[string(text)] = n
		fmt.Fprintf(w, "%s\n", text)
	}
	return n
}

// text returns the number of a string, or 0 for an empty one.
func (t *tables) text(w io.Writer, s string) int {
	s = sites.Printable(s)
	if s == "" {
		return 0
	}
	n, ok := t.strings[s]
	if !ok {
		n = len(t.strings) + 1
		t.strings[s] = n
		fmt.Fprintf(w, "s %x %s\n", len(s), s)
	}
	return n
}

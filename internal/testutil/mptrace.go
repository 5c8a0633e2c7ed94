package testutil

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	wire "rtrace-bpf/internal/wire/mtrc"
)

// TraceRows lists the events of an mpatrol tracing file in the form of mptrace's table, reduced
// to the columns that show the contents of the file. Compare its String with MptraceTable.
type TraceRows struct {
	Words int // word size in bytes of the tool that printed the table

	out    strings.Builder
	n      int
	blocks map[uint64][2]uint64 // by index: address and size
}

// Add adds an event.
func (t *TraceRows) Add(e *wire.Event) {
	width := 2 * t.Words
	switch e.Kind {
	case wire.Heap:
		fmt.Fprintf(&t.out, "reserve 0x%0*X %d\n", width, e.Address, e.Size)
		return
	case wire.Internal:
		fmt.Fprintf(&t.out, "internal 0x%0*X %d\n", width, e.Address, e.Size)
		return
	}
	if t.blocks == nil {
		t.blocks = make(map[uint64][2]uint64)
	}
	t.n++
	block := [2]uint64{e.Address, e.Size}
	old, known := t.blocks[e.Index]
	if !known && e.Kind != wire.Alloc {
		return // mptrace prints no row for it, only a warning
	}
	name := "alloc"
	switch e.Kind {
	case wire.Realloc:
		name = "realloc"
	case wire.Free:
		name, block = "free", old
	}
	t.blocks[e.Index] = block
	fmt.Fprintf(&t.out, "%d %s %d 0x%0*X %d\n", t.n, name, e.Index, width, block[0], block[1])
	var parts []string
	s := &e.Source
	if s.Thread != 0 {
		parts = append(parts, fmt.Sprintf("thread %d", s.Thread))
	}
	if s.Function.Known {
		parts = append(parts, "in "+s.Function.Text)
	}
	if s.File.Known && s.Line != 0 {
		parts = append(parts, fmt.Sprintf("at %s line %d", s.File.Text, s.Line))
	}
	if len(parts) > 0 {
		fmt.Fprintln(&t.out, strings.Join(parts, " "))
	}
}

// String returns the rows so far.
func (t *TraceRows) String() string { return t.out.String() }

// mptraceRow matches the compared columns of a row of a table.
var mptraceRow = regexp.MustCompile(`^ *(\d+)? +([a-z]+) +(\d+)? +(0x[0-9A-F]+) +(\d+)`)

// MptraceTable reads a table that mptrace printed (--verbose --source) and
// reduces it to what TraceRows lists.
func MptraceTable(tb testing.TB, path string) string {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			break // the statistics follow
		}
		if m := mptraceRow.FindStringSubmatch(line); m != nil {
			if m[1] != "" {
				fmt.Fprintf(&out, "%s %s %s ", m[1], m[2], m[3])
			} else {
				fmt.Fprintf(&out, "%s ", m[2])
			}
			fmt.Fprintf(&out, "%s %s\n", m[4], m[5])
		} else if source, ok := strings.CutPrefix(line, strings.Repeat(" ", 24)); ok {
			fmt.Fprintln(&out, source)
		}
	}
	return out.String()
}

// FirstDifference describes the first line in which two texts differ.
func FirstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is %q, want %q", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a)-1, len(b)-1)
}

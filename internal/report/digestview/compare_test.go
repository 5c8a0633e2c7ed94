package digestview

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/testutil/browser"
)

// compared returns a row of a stack, the innermost frame first.
func compared(before, after live.Amount, stack ...string) Compared {
	c := Compared{Before: before, After: after}
	for _, name := range stack {
		c.Frames = append(c.Frames, sites.Frame{Place: sites.Place{Function: name, Module: "/usr/bin/prog"}})
	}
	return c
}

func openComparison(t *testing.T, c *Comparison, width int) *browser.Page {
	t.Helper()
	return openWritten(t, width, func(w io.Writer) error { return WriteComparison(w, c) })
}

// openWritten opens a page that fetches nothing, has no errors, and no markup from names.
func openWritten(t *testing.T, width int, write func(io.Writer) error) *browser.Page {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "growth.html")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p := browser.Open(t, path, width, 900)
	t.Cleanup(func() {
		if faults := p.Faults(); len(faults) > 0 {
			t.Errorf("errors of the page: %v", faults)
		}
		if got := p.Fetched(); !slices.Equal(got, []string{"file://" + path}) {
			t.Errorf("the page fetched %v", got)
		}
		var images int
		if p.Eval("document.querySelectorAll('img, b').length", &images); images > 0 {
			t.Errorf("a name became markup: %d elements", images)
		}
	})
	return p
}

// The boxes have the widths and colours of what changed, the tables its figures, in both units.
func TestComparison(t *testing.T) {
	c := &Comparison{Before: "a " + hostile, After: "b " + hostile, Notes: []string{"Compared " + hostile}, Rows: []Compared{
		compared(live.Amount{Blocks: 10, Bytes: 1000}, live.Amount{Blocks: 40, Bytes: 4000}, "session", "work", "main"),
		compared(live.Amount{}, live.Amount{Blocks: 5, Bytes: 1000}, hostile, "work", "main"),
		compared(live.Amount{Blocks: 7, Bytes: 2000}, live.Amount{Blocks: 7, Bytes: 1900}, "cache", "main"),
		compared(live.Amount{Blocks: 3, Bytes: 300}, live.Amount{Blocks: 3, Bytes: 300}, "steady", "main"),
		compared(live.Amount{Blocks: 2, Bytes: 64}, live.Amount{Blocks: 1, Bytes: 32}, "session", "setup", "main"),
	}}
	p := openComparison(t, c, 1200)
	for id, want := range map[string]string{"before": "3.29 KiB", "after": "7.06 KiB", "change": "+3.78 KiB", "grown": "3.91 KiB", "shrunk": "132 B"} {
		if got := p.Text("#card-" + id + " .big"); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	for _, tt := range []struct {
		unit, measure, box, class string
		width                     float64
	}{
		{"Bytes", "What grew", "4 session", "cup3", 0.75},
		{"Bytes", "What grew", "4 " + hostile, "cup3", 0.25},
		{"Bytes", "What shrank", "3 cache", "cdown1", 100.0 / 132},
		{"Bytes", "After", "3 steady", "c7", 300.0 / 7232},
		{"Bytes", "Before", "3 work", "cup3", 1000.0 / 3364},
		{"Blocks", "After", "3 cache", "c7", 7.0 / 56},
		{"Blocks", "What shrank", "4 session", "cdown2", 1},
	} {
		press(p, "units", tt.unit)
		press(p, "measures", tt.measure)
		b, ok := boxes(p)[tt.box]
		if !ok || !near(b.Width, tt.width) || !strings.Contains(b.Class+" ", tt.class+" ") {
			t.Errorf("%s, %s, %q: %+v (%v), want %v and %s", tt.unit, tt.measure, tt.box, b, ok, tt.width, tt.class)
		}
	}
	press(p, "units", "Bytes")
	want := [][]string{
		{"+2.9 KiB", "+29", "1.04 KiB", "3.94 KiB", "session from prog"},
		{"+1000 B", "+5", "0 B", "1000 B", hostile + " from prog"},
		{"−100 B", "0", "1.95 KiB", "1.86 KiB", "cache from prog"},
	}
	if got := rows(p, "#function-table"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("functions %q, want %q", got, want)
	}
	if got := rows(p, "#stack-table"); len(got) != 4 || got[0][4] != "session ← work ← main" || got[0][0] != "+2.93 KiB" || got[3][4] != "cache ← main" {
		t.Errorf("stacks %q", got)
	}
	p.Key("/")
	var focused string
	if p.Eval("document.activeElement.id", &focused); focused != "search" {
		t.Errorf("/ focuses %q", focused)
	}
}

// All texts are readable, and nothing is wider than a narrow window.
func TestComparisonNarrowAndDark(t *testing.T) {
	c := &Comparison{Before: "a", After: "b"}
	for i := range uint64(8) {
		c.Rows = append(c.Rows, compared(live.Amount{Blocks: i, Bytes: 100 * i}, live.Amount{Blocks: 7 - i, Bytes: 100 * (7 - i)}, fmt.Sprint("f", i), "main"))
	}
	p := openComparison(t, c, 360)
	press(p, "measures", "After")
	isReadable(t, p)
}

// However many stacks there are, the page is small, and its sums are whole.
func TestComparisonBounded(t *testing.T) {
	c := &Comparison{Before: "a", After: "b"}
	var total uint64
	for i := range uint64(40_000) {
		total += i
		c.Rows = append(c.Rows, compared(live.Amount{}, live.Amount{Blocks: 1, Bytes: i}, fmt.Sprint("f", i), fmt.Sprint("g", i%100), "main"))
	}
	var out bytes.Buffer
	if err := WriteComparison(&out, c); err != nil {
		t.Fatal(err)
	}
	var sum uses
	of := &buildComparison(c).Resources[0]
	for i := range of.Stacks.Uses {
		sum.add(&of.Stacks.Uses[i])
	}
	if out.Len() > 5_000_000 || sum[3] != total || sum[5] != total || sum[2] != 40_000 || sum[7] != 0 {
		t.Errorf("%d bytes, sums %v, want %d", out.Len(), sum, total)
	}
}

package digestview

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/sites"
)

// Boxes and rows have the differences with their errors; only those that exclude 0 have a colour.
func TestEstimatesComparison(t *testing.T) {
	of := func(before, after float64) ComparedRates { return ComparedRates{about(before, 10), about(after, 10)} }
	frame := func(name string) sites.Frame {
		return sites.Frame{Place: sites.Place{Function: name, Module: "/usr/bin/prog"}}
	}
	c := &EstimatesComparison{
		Before: "a " + hostile, After: "b " + hostile, Windows: [2]string{"one", "other"}, Total: of(1000, 3000),
		Sites: []ComparedSite{{hostile, of(400, 2400)}, {"load", of(590, 600)}, {"old", of(10, 0)}},
		Boxes: []ComparedBox{
			{0, sites.Frame{}, of(1000, 3000)},
			{0, frame("main"), of(1000, 3000)},
			{1, frame(hostile), of(400, 2400)},
			{1, frame("load"), of(590, 600)},
			{1, frame("old"), of(10, 0)},
		},
	}
	p := openWritten(t, 1200, func(w io.Writer) error { return WriteEstimatesComparison(w, c) })
	want := [][]string{
		{"+20,000 ± 2,433", "4,000 ± 400", "24,000 ± 2,400", "more", hostile},
		{"+100 ± 841", "5,900 ± 590", "6,000 ± 600", "", "load"},
		{"-100 ± 10", "100 ± 10", "0", "less", "old"},
	}
	if got := rows(p, "#who-table"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("call sites %q, want %q", got, want)
	}
	all := boxes(p)
	if a, b := all["3 "+hostile], all["3 load"]; !near(a.Width, 0.8) || !strings.Contains(a.Class, "cup3") || !near(b.Width, 0.2) || !strings.Contains(b.Class, "c7") {
		t.Errorf("boxes: %+v", all)
	}
	press(p, "measures", "Before")
	press(p, "units", "Blocks")
	if got := boxes(p)["3 load"]; !near(got.Width, 0.59) {
		t.Errorf("before: %+v", got)
	}
	if got := p.Text("#what"); got != "all stacks: +20,000 ± 3,162 bytes per second (before 10,000 ± 1,000, after 30,000 ± 3,000), +2,000 ± 316 blocks per second (before 1,000 ± 100, after 3,000 ± 300)" {
		t.Errorf("all have %q", got)
	}
	for selector, want := range map[string]string{".verdict": "2 of 3 call sites changed", ".notes .warn": "-e growth", ".notes": "Before: one. After: other."} {
		if got := p.Text(selector); !strings.Contains(got, want) {
			t.Errorf("%s has %q, not %q", selector, got, want)
		}
	}
	p.Resize(360, 800)
	isReadable(t, p)
}

package digestview

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/testutil/browser"
)

// about returns what is known of a number of blocks of a size, with an error of a tenth.
func about(blocks, size float64) estimate.Allocated {
	of := func(x float64) estimate.Estimate {
		return estimate.Estimate{Value: x, Error: x / 20, Low: 0.9 * x, High: 1.1 * x}
	}
	return estimate.Allocated{Blocks: of(blocks), Bytes: of(blocks * size)}
}

// estimated returns a page of two call sites below main, in a recording of 10 s with n windows.
func estimated(n int) *Estimates {
	frame := func(name string) sites.Frame {
		return sites.Frame{Place: sites.Place{Function: name, Module: "/usr/bin/prog"}}
	}
	e := &Estimates{
		Name: "/usr/bin/" + hostile, PID: 7, Length: 10e9, Windows: "estimated from windows", Cost: []string{"about 1 %", "below 2 %"}, Total: about(4000, 100),
		Sites: []EstimatedSite{{hostile, about(3000, 100)}, {"load", about(1000, 100)}},
		Boxes: []EstimatedBox{
			{0, sites.Frame{}, about(4000, 100)}, {0, frame("main"), about(4000, 100)}, {1, frame(hostile), about(3000, 100)}, {1, frame("load"), about(1000, 100)},
		},
	}
	for i := range n {
		at := int64(i) * 10e9 / int64(n)
		e.Rates = append(e.Rates, estimate.Rate{From: at, To: at + 1e6, Stretch: 10e9 / float64(n), Blocks: 400, Bytes: float64(40_000 + 1000*(i%2))})
	}
	return e
}

func openEstimates(t *testing.T, e *Estimates, width int) *browser.Page {
	t.Helper()
	return openWritten(t, width, func(w io.Writer) error { return WriteEstimates(w, e, Options{File: "trace", Format: "jsonl"}) })
}

// Boxes have the widths of the estimates, and every figure has its error, in both units.
func TestEstimates(t *testing.T) {
	p := openEstimates(t, estimated(5), 1200)
	for unit, want := range map[string][][]string{
		"Bytes": {
			{"30,000 ± 3,000", "75 %", "300 ± 30", "300,000 ± 30,000", "3,000 ± 300", hostile},
			{"10,000 ± 1,000", "25 %", "100 ± 10", "100,000 ± 10,000", "1,000 ± 100", "load"},
		},
		"Blocks": {
			{"300 ± 30", "75 %", "30,000 ± 3,000", "300,000 ± 30,000", "3,000 ± 300", hostile},
			{"100 ± 10", "25 %", "10,000 ± 1,000", "100,000 ± 10,000", "1,000 ± 100", "load"},
		},
	} {
		press(p, "units", unit)
		if got := rows(p, "#who-table"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q", unit, got)
		}
		all := boxes(p)
		if a, b := all["3 "+hostile], all["3 load"]; !near(a.Width, 0.75) || !near(b.Width, 0.25) {
			t.Errorf("%s: boxes %+v", unit, all)
		}
	}
	p.Eval("[...document.querySelectorAll('#flame .box')].find(b => b.textContent === 'load').click()", nil)
	if got := p.Text("#what"); got != "load: 10,000 ± 1,000 bytes and 100 ± 10 blocks per second; 100,000 ± 10,000 bytes in 1,000 ± 100 blocks, 25 % of the total — /usr/bin/prog" {
		t.Errorf("the box has %q", got)
	}
	for selector, want := range map[string]string{
		".verdict": "40,000 ± 4,000 bytes.", ".verdict .warn": "sudo rtrace-bpf record -e growth -p 7", ".notes": "Budget: below 2 %.", "h1": "<img src=x",
	} {
		if got := p.Text(selector); !strings.Contains(got, want) {
			t.Errorf("%s has %q, not %q", selector, got, want)
		}
	}
	// Each window is shaded at its place on the axis of time.
	press(p, "units", "Bytes")
	p.Eval("document.querySelector('.curve').scrollIntoView()", nil)
	all := windowColumns(p)
	for i, w := range all {
		if !near(w.Left, float64(i)/5) || w.Width < 2 || w.Height < 100 {
			t.Errorf("window %d is at %+v", i, w)
		}
	}
	if len(all) != 5 {
		t.Fatalf("%d windows", len(all))
	}
	var left float64
	p.Eval("document.querySelectorAll('.curve .window')[1].getBoundingClientRect().left", &left)
	if p.MoveTo(left+1, all[1].Bottom-20); p.Text("#at") != "Window at 2 s, open for 1 ms, for a time of 2 s: 40 KiB per second" {
		t.Errorf("the pointer reads %q", p.Text("#at"))
	}
}

// windowColumns returns the shaded columns of windows, with places as shares of the axis.
func windowColumns(p *browser.Page) (all []struct{ Left, Width, Height, Bottom float64 }) {
	p.Eval(`(() => { const axis = document.querySelector('.curve .grid').getBoundingClientRect();
		return [...document.querySelectorAll('.curve .window')].map(e => { const r = e.getBoundingClientRect(); return {left: (r.left - axis.left) / axis.width, width: r.width, height: r.height, bottom: r.bottom}; }); })()`, &all)
	return all
}

// Many windows are drawn as fewer columns.
func TestEstimatesNarrowAndDark(t *testing.T) {
	p := openEstimates(t, estimated(20_000), 360)
	isReadable(t, p)
	if all := windowColumns(p); len(all) < 30 || len(all) > 100 {
		t.Errorf("%d columns", len(all))
	}
}

// However many boxes there are, the page is small, and the parent of each box is in it.
func TestEstimatesBounded(t *testing.T) {
	e := estimated(100_000)
	for i := range 50_000 {
		e.Boxes = append(e.Boxes, EstimatedBox{2, sites.Frame{Place: sites.Place{Function: fmt.Sprint(strings.Repeat("long", 200), i)}}, about(float64(i)/1e6, 10)})
		e.Boxes = append(e.Boxes, EstimatedBox{len(e.Boxes) - 1, sites.Frame{Place: sites.Place{Function: "leaf"}}, about(float64(i)/1e6, 10)})
		e.Sites = append(e.Sites, EstimatedSite{fmt.Sprint("f", i), about(1, 1)})
	}
	var out bytes.Buffer
	if err := WriteEstimates(&out, e, Options{}); err != nil {
		t.Fatal(err)
	}
	p := buildEstimates(e)
	if out.Len() > 5_000_000 || p.Cut != len(e.Boxes)-len(p.Boxes) || p.Cut == 0 || p.Left != len(e.Sites)-maxRows {
		t.Errorf("%d bytes, %d boxes, %d and %d left out", out.Len(), len(p.Boxes), p.Cut, p.Left)
	}
	for i, b := range p.Boxes[1:] {
		if b.Parent > i {
			t.Fatalf("box %d is before its parent %d", i+1, b.Parent)
		}
	}
}

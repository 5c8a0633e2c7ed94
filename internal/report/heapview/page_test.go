package heapview

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/heapmap"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/report/theme"
	"rtrace-bpf/internal/testutil/browser"
)

// open writes a page and opens it.
func open(t *testing.T, w *world, o Options) *browser.Page {
	t.Helper()
	var out bytes.Buffer
	if err := WriteHTML(&out, w.m, w.curve, o); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "map.html")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p := browser.Open(t, path, 1300, 800)
	p.Eval("heapmapReady", nil)
	t.Cleanup(func() {
		if faults := p.Faults(); len(faults) > 0 {
			t.Errorf("errors of the page: %v", faults)
		}
		if got := p.Fetched(); !slices.Equal(got, []string{"file://" + path}) {
			t.Errorf("the page fetched %v", got)
		}
	})
	return p
}

// slide moves the slider as a user does.
func slide(p *browser.Page, event uint64) {
	p.Eval(fmt.Sprintf("(s => { s.value = %d; s.dispatchEvent(new Event('input')); heapmap.drawNow(); })(document.getElementById('slider'))", event), nil)
}

// The page and the model of package heapmap agree on every cell and on the live
// blocks, for any moment, place and zoom.
func TestPageAgainstModel(t *testing.T) {
	w := build(7, 3000, false)
	o := w.options(3000)
	p := open(t, w, o)
	if len(o.Regions) != 2 {
		t.Fatalf("regions %v", o.Regions)
	}
	for _, event := range []uint64{0, 1, 2, 500, 1234, w.m.Peak().Event, 2999, 3000} {
		slide(p, event)
		level := w.levels[event]
		want := fmt.Sprintf("%s live in %s", figure.Bytes(level.Bytes), plural(level.Blocks, "block"))
		if event == w.m.Peak().Event {
			want += " (peak)"
		}
		if got := p.Text("#level"); got != want {
			t.Errorf("event %d: %q, want %q", event, got, want)
		}
		for i, r := range o.Regions {
			for _, g := range []heapmap.Grid{
				{Base: r.Start, CellBytes: 16, Cells: 500},
				{Base: r.Start + 4096, CellBytes: 1, Cells: 3000},
				{Base: r.Start, CellBytes: 1024, Cells: 200},
				{Base: r.Start + 1000, CellBytes: 128, Cells: 77},
			} {
				var cells []int
				p.Eval(fmt.Sprintf("Array.from(paint(heapmap.data, %d, %d, %d, %d, heapmap.map.event))", i, g.Base-r.Start, g.CellBytes, g.Cells), &cells)
				for n, c := range w.m.Paint(g, event) {
					// Outside of a region the page shows nothing.
					if g.Base+uint64(n)*g.CellBytes <= r.Last && cells[n] != int(c) {
						t.Fatalf("event %d, grid %+v, cell %d: %d, want %d", event, g, n, cells[n], c)
					}
				}
			}
		}
	}
}

// find returns the position of a cell of the page in the window.
type spot struct{ X, Y, Region, Offset float64 }

// The pixels on the screen have the colours of the cells in light and dark
// mode, zoomed and scrolled.
func TestPageOnScreen(t *testing.T) {
	w := build(8, 3000, false)
	o := w.options(1000)
	p := open(t, w, o)
	for _, step := range []struct {
		name string
		dark bool
		do   func()
	}{
		{"as it opens", false, func() {}},
		{"dark, at the peak", true, func() { p.Click("#peak") }},
		{"zoomed", true, func() { p.Click("#in"); p.Click("#in") }},
		{"light, scrolled, by keys", false, func() { p.Click("#map"); p.Key("-"); p.Key("PageDown"); p.Key("ArrowLeft"); p.Key("ArrowUp") }},
		{"second region", false, func() { p.Click("#regions tr:nth-child(2) button") }},
		{"all again", true, func() { p.Click("#all"); p.Click("#end") }},
		{"smaller", false, func() { p.Resize(900, 1000) }},
	} {
		step.do()
		p.Dark(step.dark)
		p.MoveTo(5, 5)
		// Wait for two frames, until size changes have been processed and
		// everything is drawn.
		p.Eval("heapmap.map.picked = -1; new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => { heapmap.drawNow(); done(); })))", nil)
		picture, err := png.Decode(bytes.NewReader(p.Screenshot()))
		if err != nil {
			t.Fatal(err)
		}
		var now struct {
			Event uint64
			Zoom  int
			Spots []spot
		}
		p.Eval(`(() => {
			const m = heapmap.map, box = m.canvas.getBoundingClientRect(), spots = [];
			for (let y = 3; y < Math.min(m.height, innerHeight - box.y); y += 7) {
				for (let x = GUTTER; x < m.width - BAR; x += 13) {
					const f = m.find(x, y);
					if (!f) continue;
					const top = m.yOf(f.region, f.offset) - m.scroll + 2, left = GUTTER + Math.floor((x - GUTTER) / m.cellWidth) * m.cellWidth;
					if (top > 0) spots.push({x: Math.floor(box.x) + left + 1, y: Math.floor(box.y + top), region: f.region, offset: f.offset});
				}
			}
			return {event: m.event, zoom: m.zoom, spots};
		})()`, &now)
		if len(now.Spots) < 50 {
			t.Errorf("%s: only %d places", step.name, len(now.Spots))
		}
		wrong := 0
		for _, s := range now.Spots {
			g := heapmap.Grid{Base: o.Regions[int(s.Region)].Start + uint64(s.Offset), CellBytes: 1 << now.Zoom, Cells: 1}
			want := colours()[w.m.Paint(g, now.Event)[0]]
			if got := at(picture, int(s.X), int(s.Y)); got != value(want, step.dark) {
				if wrong++; wrong < 4 {
					t.Errorf("%s: %s at %v, event %d, zoom %d; want %s", step.name, got, s, now.Event, now.Zoom, want.Name)
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%s: %d of %d places are wrong", step.name, wrong, len(now.Spots))
		}
	}
}

func at(m image.Image, x, y int) string {
	c := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
	return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)
}

func value(c theme.Colour, dark bool) string {
	if dark {
		return c.Dark
	}
	return c.Light
}

// The page describes the block under the pointer, plays, and handles keys.
func TestPageByHand(t *testing.T) {
	w := build(9, 3000, false)
	o := w.options(1500)
	p := open(t, w, o)
	var block *heapmap.Block
	for b := range w.m.Blocks() {
		if b.Size > 40 && b.Address >= high && b.Born < 1500 && b.Died > 1600 {
			block = b
			break
		}
	}
	if block == nil {
		t.Fatal("the trace has no such block")
	}
	p.Eval(fmt.Sprintf("heapmap.map.show(1, %d, 64)", block.Address-high), nil)
	var x, y float64
	p.Eval(fmt.Sprintf("(() => { const m = heapmap.map, b = m.canvas.getBoundingClientRect(), o = %d; return b.x + GUTTER + (o %% m.rowBytes()) / 2 ** m.zoom * m.cellWidth + 2; })()", block.Address-high), &x)
	p.Eval(fmt.Sprintf("heapmap.map.canvas.getBoundingClientRect().y + heapmap.map.yOf(1, %d) - heapmap.map.scroll + 3", block.Address-high), &y)
	p.MoveTo(x, y)
	text := p.Text("#what")
	site := w.m.Site(block.Site)
	for _, want := range []string{
		fmt.Sprintf("%#x: %d bytes", block.Address, block.Size), "allocated at event " + figure.Count(block.Born), "freed at " + figure.Count(block.Died),
		"thread " + strconv.FormatUint(w.m.Thread(block.Thread), 10), "malloc in " + site.Frame.String(),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	slide(p, block.Died)
	p.MoveTo(x+1, y)
	if text := p.Text("#what"); !strings.Contains(text, "freed; last here was") || !strings.Contains(text, fmt.Sprintf("%#x", block.Address)) {
		t.Errorf("after its free: %q", text)
	}
	event := func() (n uint64) {
		p.Eval("heapmap.map.event", &n)
		return n
	}
	p.Click("#map")
	for _, k := range []struct {
		key  string
		want uint64
	}{{"ArrowRight", block.Died + 1}, {"ArrowLeft", block.Died}} {
		if p.Key(k.key); event() != k.want {
			t.Errorf("%s: event %d, want %d", k.key, event(), k.want)
		}
	}
	p.Click("#start")
	if event() != 0 || p.Text("#level") != "0 B live in 0 blocks" {
		t.Errorf("start: event %d, %s", event(), p.Text("#level"))
	}
	p.Click("#play")
	p.Eval("new Promise(done => { const look = () => heapmap.map.event > 20 ? done() : requestAnimationFrame(look); look(); })", nil)
	if got := p.Text("#play"); got != "Pause" {
		t.Errorf("while it plays the button is labelled %q", got)
	}
	p.Click("#play")
	if got := p.Text("#play"); got != "Play" || event() <= 20 {
		t.Errorf("paused at %d, the button is labelled %q", event(), got)
	}
	for _, mode := range []string{"age", "size", "thread", "site"} {
		p.Eval(fmt.Sprintf("(s => { s.value = '%s'; s.dispatchEvent(new Event('change')); heapmap.drawNow(); })(document.getElementById('mode'))", mode), nil)
		if got := p.Text("#legend"); mode == "thread" && !strings.Contains(got, "thread 101") || mode == "site" && !strings.Contains(got, "in caller") {
			t.Errorf("legend of %s: %q", mode, got)
		}
	}
}

// The page first shows the range of --base; for long traces it states what is
// left out.
func TestPageView(t *testing.T) {
	w := build(10, 2000, false)
	o := w.options(2000)
	o.View = heapmap.Region{Start: low + 0x2000, Last: low + 0x2fff}
	for w.m.Step() < 64 {
		w.m.Coarsen()
	}
	p := open(t, w, o)
	var top struct{ Region, Offset uint64 }
	if p.Eval("heapmap.map.find(GUTTER, HEAD, true)", &top); top.Region != 0 || top.Offset > 0x2000 || top.Offset < 0x1000 {
		t.Errorf("at the top is %+v", top)
	}
	if text := p.Text("footer"); !strings.Contains(text, "steps of 64 events") {
		t.Errorf("%q", text)
	}
	slide(p, 1000)
	var event uint64
	if p.Eval("heapmap.map.event", &event); event != 960 {
		t.Errorf("event %d", event)
	}
}

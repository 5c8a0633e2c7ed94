package digestview

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/testutil/browser"
	"rtrace-bpf/trace"
)

// hostile is a name that must not become markup.
const hostile = `</script><img src=x onerror="document.title='owned'">&lt;b>`

// world is a trace and its sums, computed from the calls alone.
type world struct {
	records []*trace.Record
	stacks  map[string]*[8]uint64 // by stack, innermost frame first, as uses
	total   [8]uint64
	freed   [2]uint64
}

// stacksOf holds stacks, the innermost frame first.
var stacksOf = [][]string{
	{"alloc_node", "parse", "work", "main"},
	{"alloc_text", "parse", "work", "main"},
	{"alloc_more", hostile, "work", "main"},
	{"setup", "main"},
	{"grow", "grow", "grow", "work", "main"},
}

// build returns a trace of n allocations. Those of stack i are freed unless
// their number is divisible by 3 + i; every second free follows its allocation
// at once.
func newWorld(n int) *world {
	w := &world{stacks: map[string]*[8]uint64{}}
	put := func(r *trace.Record) { w.records = append(w.records, r) }
	put(&trace.Record{Kind: trace.KindHeader, Header: trace.Header{Arch: "x86_64", PointerSize: 8, Clock: trace.ClockMonotonic, Origin: "rtrace-bpf 1"}})
	put(&trace.Record{Kind: trace.KindProcess, PID: 42, Process: trace.Process{Name: "/usr/bin/" + hostile, Depth: 10, WallTime: 1e18}})
	put(&trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory", Desc: "memory allocation in bytes"}})
	put(&trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 2, Type: "fd" + hostile, Desc: "file descriptor"}})
	put(&trace.Record{Kind: trace.KindThread, PID: 42, TID: 43, Thread: trace.Thread{Name: hostile}})
	put(&trace.Record{Kind: trace.KindContext, Context: trace.Context{ID: 1, Name: "loading " + hostile}})
	now, seq := int64(1e9), uint64(0)
	type one struct {
		uses *[8]uint64
		id   uint64
		size uint64
	}
	var waiting []one
	call := func(op trace.Op, id, size uint64, stack []string) {
		now += 1e6
		seq++
		r := &trace.Record{Kind: trace.KindCall, Time: now, PID: 42, TID: 43, Call: trace.Call{Seq: seq, Op: op, Function: "malloc", Resource: 1, ID: id, Size: size}}
		if seq > 50 && seq < 90 {
			r.Call.Context = 1
		}
		for _, name := range stack {
			r.Call.Stack.Frames = append(r.Call.Stack.Frames, 1+uint64(len(r.Call.Stack.Frames)))
			module := "/usr/lib/libwork.so"
			if name == "main" {
				module = "/usr/bin/prog"
			}
			r.Call.Stack.Names = append(r.Call.Stack.Names, name+" from "+module)
			r.Call.Stack.End = trace.StackComplete
		}
		put(r)
	}
	free := func(b one, temporary bool) {
		call(trace.OpFree, b.id, 0, nil)
		b.uses[0]--
		b.uses[1] -= b.size
		w.freed[0]++
		w.freed[1] += b.size
		if temporary {
			b.uses[6]++
			b.uses[7] += b.size
		}
	}
	for i := range n {
		k := (i*i + i/3) % len(stacksOf)
		size := uint64(10 + 100*k + i%7)
		key := strings.Join(stacksOf[k], "\n")
		if w.stacks[key] == nil {
			w.stacks[key] = new([8]uint64)
		}
		b := one{w.stacks[key], uint64(16 * (i + 1)), size}
		call(trace.OpAlloc, b.id, size, stacksOf[k])
		for at, v := range map[int]uint64{0: 1, 1: size, 4: 1, 5: size} {
			b.uses[at] += v
		}
		switch {
		case i%(3+k) == 0:
		case i%2 == 0:
			free(b, true)
		default:
			waiting = append(waiting, b)
		}
		if len(waiting) > 30 {
			for _, b := range waiting {
				free(b, b.id == uint64(16*(i+1)))
			}
			waiting = nil
		}
	}
	for _, b := range waiting {
		free(b, b.id == uint64(16*n))
	}
	for _, u := range w.stacks {
		for i := range u {
			w.total[i] += u[i]
		}
	}
	call(trace.OpAlloc, 3, 1, []string{"open_it", "main"})
	w.records[len(w.records)-1].Call.Resource = 2
	return w
}

func (w *world) result() *digest.Result {
	d := digest.New(digest.Options{})
	for _, r := range w.records {
		d.Add(r)
	}
	return d.Finish()
}

// open writes the page of a result and opens it.
func open(t *testing.T, r *digest.Result, width, height int) *browser.Page {
	t.Helper()
	var out bytes.Buffer
	if err := WriteHTML(&out, r, Options{File: "t " + hostile, Format: "jsonl 1", KnowsLoss: true, Verdicts: someVerdicts()}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p := browser.Open(t, path, width, height)
	t.Cleanup(func() {
		if faults := p.Faults(); len(faults) > 0 {
			t.Errorf("errors of the page: %v", faults)
		}
		if got := p.Fetched(); !slices.Equal(got, []string{"file://" + path}) {
			t.Errorf("the page fetched %v", got)
		}
		var title string
		var images int
		p.Eval("document.title", &title)
		p.Eval("document.querySelectorAll('img, b').length", &images)
		if title == "owned" || images > 0 {
			t.Errorf("a name became markup: title %q, %d elements", title, images)
		}
	})
	return p
}

// rows returns the texts of a table's cells.
func rows(p *browser.Page, selector string) (out [][]string) {
	p.Eval(fmt.Sprintf("[...document.querySelectorAll('%s tbody tr')].map(r => [...r.cells].map(c => c.textContent))", selector), &out)
	return out
}

func TestTables(t *testing.T) {
	w := newWorld(900)
	p := open(t, w.result(), 1200, 900)
	for id, want := range map[string]string{
		"live": figure.Bytes(w.total[1]), "allocated": figure.Bytes(w.total[5]), "freed": figure.Bytes(w.freed[1]),
		"temporary": figure.Percent(float64(w.total[6]) / float64(w.total[4])),
	} {
		if got := p.Text("#card-" + id + " .big"); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	label := func(stack string) string {
		names := strings.Split(stack, "\n")
		return strings.Join(names[:min(4, len(names))], " ← ")
	}
	check := func(what string, at int, down bool) {
		t.Helper()
		var keys []string
		for key, u := range w.stacks {
			if u[0] > 0 {
				keys = append(keys, key)
			}
		}
		slices.SortFunc(keys, func(a, b string) int {
			n := cmp.Compare(w.stacks[b][at], w.stacks[a][at])
			if !down {
				n = -n
			}
			return n
		})
		got := rows(p, "#stack-table")
		if len(got) != len(keys) {
			t.Fatalf("%s: %d rows, want %d", what, len(got), len(keys))
		}
		for i, key := range keys {
			u := w.stacks[key]
			want := []string{figure.Bytes(u[1]), figure.Percent(float64(u[1]) / float64(w.total[1])), figure.Count(u[0]), got[i][3], figure.Bytes(u[5]), figure.Count(u[4]), label(key)}
			if !slices.Equal(got[i], want) {
				t.Errorf("%s: row %d is %q, want %q", what, i, got[i], want)
			}
		}
	}
	check("as it opens", 1, true)
	p.Click("#stack-table th:nth-child(5) button")
	check("by allocated bytes", 5, true)
	p.Click("#stack-table th:nth-child(5) button")
	check("by allocated bytes, up", 5, false)
	var sorted string
	if p.Eval("document.querySelector('#stack-table th[aria-sort]').getAttribute('aria-sort')", &sorted); sorted != "ascending" {
		t.Errorf("aria-sort is %q", sorted)
	}
	// A row opens and shows its frames; a button in it zooms to the box.
	p.Click("#stack-table tbody tr:first-child .toggle")
	first := rows(p, "#stack-table")
	if frames := first[1][0]; !strings.Contains(frames, "main from /usr/bin/prog") {
		t.Errorf("opened: %q", frames)
	}
	p.Click("#stack-table .detail .link")
	path := strings.Split(p.Text("#crumbs"), "›")
	slices.Reverse(path)
	if got := strings.Join(path[:len(path)-1], " ← "); !strings.HasPrefix(got, first[0][6]) {
		t.Errorf("zoomed to %q, the row is %q", got, first[0][6])
	}
	p.Click("#stack-table tbody tr:first-child .toggle")
	if got := rows(p, "#stack-table"); len(got) != len(first)-1 {
		t.Errorf("closed: %d rows", len(got))
	}
	// Who: functions with callees, modules, threads.
	work := w.below("work\nmain", 1)
	found := false
	for _, r := range rows(p, "#who-table") {
		found = found || r[len(r)-1] == "work from libwork.so" && r[1] == figure.Bytes(work) && r[0] == "0 B"
	}
	if !found {
		t.Errorf("no work with %s among %q", figure.Bytes(work), rows(p, "#who-table"))
	}
	press(p, "tables", "Threads")
	if got := rows(p, "#who-table"); len(got) != 1 || got[0][0] != figure.Bytes(w.total[1]) || got[0][len(got[0])-1] != "43 "+hostile {
		t.Errorf("threads %q", got)
	}
}

func TestCurvesAndResources(t *testing.T) {
	w := newWorld(900)
	r := w.result()
	p := open(t, r, 1200, 900)
	for _, axis := range []string{"Time", "Calls"} {
		press(p, "axes", axis)
		if got := p.Text("#curve .peak"); !strings.HasPrefix(got, "peak "+figure.Bytes(r.Resources[0].Peak.Bytes)) {
			t.Errorf("%s: %q", axis, got)
		}
		// The readout under the pointer shows the live amount; at the end that
		// is the amount still live.
		p.Eval("document.querySelector('#curve svg').focus()", nil)
		p.Key("End")
		if got, want := p.Text("#at"), fmt.Sprintf("live %s in %s blocks", figure.Bytes(w.total[1]), figure.Count(w.total[0])); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", axis, got, want)
		}
	}
	if got := p.Text("#curve svg"); !strings.Contains(got, "loading "+hostile) {
		t.Errorf("no context in %q", got)
	}
	var sum float64
	p.Eval("report.resource.sizes.reduce((s, b) => s + b[2], 0)", &sum)
	if uint64(sum) != w.total[4] {
		t.Errorf("the histogram has %v blocks, want %d", sum, w.total[4])
	}
	if got := p.Text("#sizes"); !strings.Contains(got, "256 B – 511 B") {
		t.Errorf("sizes %q", got)
	}
	if got := p.Text("#lives"); !strings.Contains(got, "still live"+figure.Bytes(w.total[1])) {
		t.Errorf("lifetimes %q", got)
	}
	// Another resource has no sizes and no frees, only blocks.
	press(p, "resources", "fd"+hostile)
	if got := p.Text("#card-allocated .big"); got != "1" {
		t.Errorf("descriptors: %q", got)
	}
	var shown struct{ Live, Units, Sizes, Lives bool }
	p.Eval(`({live: !!document.getElementById('card-live'), units: !!document.querySelector('#units button'),
		sizes: document.getElementById('sizes').offsetParent !== null, lives: document.getElementById('lives').offsetParent !== null})`, &shown)
	if shown.Live || shown.Units || shown.Sizes || shown.Lives {
		t.Errorf("shown of descriptors: %+v", shown)
	}
	if !near(boxes(p)["3 open_it"].Width, 1) {
		t.Errorf("boxes %v", boxes(p))
	}
	press(p, "resources", "memory")
	if got := p.Text("#card-live .big"); got != figure.Bytes(w.total[1]) {
		t.Errorf("memory again: %q", got)
	}
}

// In a narrow window only tables and boxes are wider than the window.
func TestNarrowAndDark(t *testing.T) {
	p := open(t, newWorld(300).result(), 360, 800)
	isReadable(t, p)
}

// isReadable checks that the page is as wide as its window, 360 pixels, and that all its texts have a
// contrast of at least 4.5, light and dark.
func isReadable(t *testing.T, p *browser.Page) {
	t.Helper()
	for _, dark := range []bool{false, true} {
		p.Dark(dark)
		var wide float64
		if p.Eval("document.documentElement.scrollWidth", &wide); wide > 360 {
			t.Errorf("dark %v: the page is %v wide", dark, wide)
		}
		var worst struct {
			Contrast float64
			What     string
		}
		if p.Eval(contrast, &worst); worst.Contrast < 4.5 {
			t.Errorf("dark %v: contrast %.2f of %s", dark, worst.Contrast, worst.What)
		}
	}
}

// contrast finds the worst contrast of a text with its background.
const contrast = `(() => {
	const rgb = (s) => s.match(/[\d.]+/g).map(Number);
	const light = (c) => { const [r, g, b] = c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
	let worst = {contrast: 99, what: ''};
	for (const e of document.querySelectorAll('body *')) {
		if (!e.offsetParent || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
		const a = light(rgb(getComputedStyle(e).color).slice(0, 3)), b = light(behind(e)), c = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (c < worst.contrast) worst = {contrast: c, what: e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 40)};
	}
	return worst;
})()`

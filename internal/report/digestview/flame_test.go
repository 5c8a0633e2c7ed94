package digestview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/testutil/browser"
	"rtrace-bpf/trace"
)

type box struct {
	Name, Class string
	Left, Width float64
	Level       int
}

// boxes returns the boxes of the flame graph, with widths as fractions of the
// whole.
func boxes(p *browser.Page) map[string]box {
	var all []box
	p.Eval(`[...document.querySelectorAll('#flame .box')].map(e => ({name: e.textContent || e.getAttribute('aria-label'), class: e.className,
		left: parseFloat(e.style.left), width: e.getBoundingClientRect().width / document.getElementById('flame').clientWidth, level: Number(e.getAttribute('aria-level'))}))`, &all)
	out := map[string]box{}
	for _, b := range all {
		out[fmt.Sprintf("%d %s", b.Level, b.Name)] = b
	}
	return out
}

func press(p *browser.Page, group, text string) {
	p.Eval(fmt.Sprintf("[...document.querySelectorAll('#%s button')].find(b => b.textContent === %q).click()", group, text), nil)
}

// below sums up the stacks that end in the given outermost frames.
func (w *world) below(suffix string, at int) (sum uint64) {
	for stack, u := range w.stacks {
		if stack == suffix || strings.HasSuffix(stack, "\n"+suffix) {
			sum += u[at]
		}
	}
	return sum
}

func near(a, b float64) bool { return a-b < 0.003 && b-a < 0.003 }

func TestFlameGraph(t *testing.T) {
	w := newWorld(900)
	p := open(t, w.result(), 1200, 900)
	widths := func(what string, at int, top string) {
		t.Helper()
		all := boxes(p)
		for _, path := range []string{"main", "work\nmain", "parse\nwork\nmain", hostile + "\nwork\nmain", "setup\nmain", "alloc_text\nparse\nwork\nmain", "grow\ngrow\nwork\nmain"} {
			name, _, _ := strings.Cut(path, "\n")
			key := fmt.Sprintf("%d %s", 2+strings.Count(path, "\n"), name)
			want := float64(w.below(path, at)) / float64(w.below(top, at))
			switch b, ok := all[key]; {
			case strings.HasSuffix("\n"+top, "\n"+path): // above the zoomed box
				want = 1
				fallthrough
			case strings.HasSuffix(path, "\n"+top):
				if ok && !near(b.Width, want) || !ok && want > 0.002 {
					t.Errorf("%s: %q is %v wide (%v), want %v", what, key, b.Width, ok, want)
				}
			case ok:
				t.Errorf("%s: %q is outside of the zoomed box", what, key)
			}
		}
	}
	for _, m := range []struct {
		name string
		at   int
	}{{"Still live at the end", 0}, {"Allocated", 4}, {"Temporary", 6}} {
		press(p, "measures", m.name)
		press(p, "units", "Bytes")
		widths(m.name, m.at+1, "main")
		press(p, "units", "Blocks")
		widths(m.name+" blocks", m.at, "main")
	}
	// Zoom with a click, and back with a breadcrumb, Escape and the button.
	press(p, "measures", "Allocated")
	press(p, "units", "Bytes")
	click := func(name string) {
		t.Helper()
		p.Eval(fmt.Sprintf("[...document.querySelectorAll('#flame .box')].find(e => e.textContent === %q).setAttribute('data-this', '')", name), nil)
		p.Click("[data-this]")
	}
	click("parse")
	widths("zoomed", 5, "parse\nwork\nmain")
	if got := p.Text("#crumbs"); got != "all›main›work›parse" {
		t.Errorf("breadcrumbs %q", got)
	}
	press(p, "crumbs", "work")
	widths("breadcrumb", 5, "work\nmain")
	click(hostile)
	if got := p.Text("#what"); !strings.Contains(got, hostile+": allocated "+figure.Bytes(w.below(hostile+"\nwork\nmain", 5))) {
		t.Errorf("%q", got)
	}
	p.Key("Escape")
	widths("Escape", 5, "work\nmain")
	p.Click("#reset")
	widths("reset", 5, "main")
}

func TestFlameKeysAndSearch(t *testing.T) {
	w := newWorld(900)
	p := open(t, w.result(), 1200, 900)
	press(p, "measures", "Allocated")
	// Keys: down to the largest child, sideways, up, Enter.
	p.Eval("document.querySelector('#flame .box[tabindex=\"0\"]').focus()", nil)
	focus := func() (name string) {
		p.Eval("document.activeElement.textContent", &name)
		return name
	}
	kids := []string{"parse", hostile, "grow"}
	slices.SortFunc(kids, func(a, b string) int {
		return cmp.Compare(w.below(b+"\nwork\nmain", 5), w.below(a+"\nwork\nmain", 5))
	})
	for _, k := range [][2]string{{"ArrowDown", "main"}, {"ArrowDown", "work"}, {"ArrowRight", "setup"}, {"ArrowLeft", "work"}, {"ArrowDown", kids[0]}, {"ArrowRight", kids[1]}, {"Enter", kids[1]}} {
		if p.Key(k[0]); focus() != k[1] {
			t.Fatalf("%s: focus is on %q, want %q", k[0], focus(), k[1])
		}
	}
	if !near(boxes(p)["4 "+kids[1]].Width, 1) {
		t.Errorf("Enter did not zoom: %v", boxes(p))
	}
	p.Key("Escape")
	p.Key("Escape")
	p.Key("Escape")
	// Search: matching boxes are marked, their share is shown, and a match
	// below a match counts once.
	for _, q := range []struct {
		text string
		hits []string
		want uint64
	}{
		{"PARSE", []string{"parse"}, w.below("parse\nwork\nmain", 5)},
		{"grow", []string{"grow"}, w.below("grow\nwork\nmain", 5)},
		{"alloc_t", []string{"alloc_text"}, w.below("alloc_text\nparse\nwork\nmain", 5)},
		{"alloc_", []string{"alloc_more", "alloc_node", "alloc_text"}, w.below("parse\nwork\nmain", 5) + w.below(hostile+"\nwork\nmain", 5)},
		{"<img", []string{hostile}, w.below(hostile+"\nwork\nmain", 5)},
		{"nothing like it", nil, 0},
	} {
		p.Key("/")
		p.Eval(fmt.Sprintf("(s => { s.value = %q; s.dispatchEvent(new Event('input')); })(document.activeElement)", q.text), nil)
		var hits []string
		p.Eval("[...new Set([...document.querySelectorAll('#flame .hit')].map(e => e.textContent || e.getAttribute('aria-label')))].sort()", &hits)
		if !slices.Equal(hits, q.hits) && len(hits)+len(q.hits) > 0 {
			t.Errorf("%s: marked are %q", q.text, hits)
		}
		want := figure.Percent(float64(q.want)/float64(w.total[5])) + " matches: " + figure.Bytes(q.want)
		if got := p.Text("#matched"); got != want {
			t.Errorf("%s: %q, want %q", q.text, got, want)
		}
	}
	p.Click("#reset")
	if got := p.Text("#matched"); got != "" {
		t.Errorf("after the reset: %q", got)
	}
	// Inverted, the innermost frames are the outermost boxes.
	press(p, "directions", "From the allocation")
	all, sums := boxes(p), map[string]uint64{}
	for stack, u := range w.stacks {
		name, _, _ := strings.Cut(stack, "\n")
		sums[name] += u[5]
	}
	for name, sum := range sums {
		if b := all["2 "+name]; !near(b.Width, float64(sum)/float64(w.total[5])) {
			t.Errorf("inverted: %s is %v wide, want %d of %d", name, b.Width, sum, w.total[5])
		}
	}
}

// Boxes show short names; the line above them, a search and a screen reader have the whole ones.
func TestShortNames(t *testing.T) {
	const whole, short = "void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int&&)", "std::vector<int>::_M_realloc_insert<int>(int&&)"
	d := digest.New(digest.Options{})
	r := &trace.Record{Kind: trace.KindCall, Time: 1, PID: 1, Call: trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: 16, Size: 100}}
	r.Call.Stack = trace.Stack{Frames: []uint64{1, 2}, Names: []string{"leaf from /usr/bin/prog", whole + " from /usr/bin/prog"}, End: trace.StackComplete}
	d.Add(r)
	p := open(t, d.Finish(), 1200, 900)
	var text, label string
	p.Eval("document.querySelectorAll('#flame .box')[1].textContent", &text)
	p.Eval("document.querySelectorAll('#flame .box')[1].getAttribute('aria-label')", &label)
	if text != short || label != whole {
		t.Errorf("box %q, label %q", text, label)
	}
	p.Eval("document.querySelectorAll('#flame .box')[1].focus()", nil)
	if got := p.Text("#what"); !strings.HasPrefix(got, whole+": allocated 100 B") {
		t.Errorf("%q", got)
	}
}

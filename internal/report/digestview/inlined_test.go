package digestview

import (
	"os"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// inlinedResult returns the result of a trace with 30 blocks of get, which is
// inlined into load at two lines and also called by other, and with one block
// of main.
func inlinedResult() *digest.Result {
	d := digest.New(digest.Options{Framer: sites.Framer{Inlined: true}})
	id := uint64(0)
	add := func(n, size int, names ...string) {
		for range n {
			id++
			r := &trace.Record{Kind: trace.KindCall, Time: int64(id), PID: 4, TID: 4}
			r.Call = trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: id, Size: uint64(size)}
			for i := range names {
				r.Call.Stack.Frames = append(r.Call.Stack.Frames, uint64(i+1))
			}
			r.Call.Stack.Names, r.Call.Stack.End = names, trace.StackComplete
			d.Add(r)
		}
	}
	add(20, 100, "get() at box.h:6 (inlined by) load() at load.c:18", "main() at main.c:40")
	add(5, 100, "get() at box.h:7 (inlined by) load() at load.c:21", "main() at main.c:40")
	add(5, 100, "get() at box.h:6", "other() at load.c:30", "main() at main.c:41")
	add(1, 900, "main() at main.c:42")
	return d.Finish()
}

// TestInlined checks that inlined functions have their own, marked boxes and
// frames, and that both show their lines.
func TestInlined(t *testing.T) {
	p := open(t, inlinedResult(), 1200, 900)
	all := boxes(p)
	for key, want := range map[string]struct {
		bytes   float64
		inlined bool
	}{"2 main": {3900, false}, "3 load": {2500, false}, "4 get": {500, false}, "3 other": {500, false}} {
		b, ok := all[key]
		if key == "4 get" {
			continue // there are two, checked below
		}
		if !ok || !near(b.Width, want.bytes/3900) || strings.Contains(b.Class, "inlined") != want.inlined {
			t.Errorf("%s: %v, %+v", key, ok, b)
		}
	}
	var gets []struct {
		Width  float64
		Label  string
		Italic bool
	}
	p.Eval(`[...document.querySelectorAll('#flame .box')].filter(e => e.textContent === 'get').map(e => ({
		width: e.getBoundingClientRect().width / document.getElementById('flame').clientWidth,
		label: e.getAttribute('aria-label') || '', italic: getComputedStyle(e).fontStyle === 'italic'}))`, &gets)
	if len(gets) != 2 || !near(gets[0].Width, 2500./3900) || gets[0].Label != "get, inlined" || !gets[0].Italic ||
		!near(gets[1].Width, 500./3900) || gets[1].Label != "" || gets[1].Italic {
		t.Errorf("boxes of get: %+v", gets)
	}
	describe := func(name string) string {
		p.Eval("[...document.querySelectorAll('#flame .box')].find(e => e.textContent === '"+name+"').dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))", nil)
		return p.Text("#what")
	}
	for name, want := range map[string]string{
		"get":  "get at box.h:6, box.h:7 (inlined): ",
		"load": "load at load.c:18, load.c:21: ",
		"main": "main at main.c:40, main.c:42, main.c:41: ",
	} {
		if got := describe(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := p.Text("#legend"); !strings.Contains(got, "inlined into its caller") {
		t.Errorf("legend %q", got)
	}
	// The stacks show each line; a link goes to the box of the inlined function.
	p.Click("#stack-table tbody tr:first-child .toggle")
	var frames []string
	p.Eval("[...document.querySelectorAll('#stack-table .frames li')].map(e => e.textContent)", &frames)
	if want := []string{"get at box.h:6 inlined", "load at load.c:18", "main at main.c:40"}; !slices.Equal(frames, want) {
		t.Errorf("frames %q, want %q", frames, want)
	}
	p.Click("#stack-table .detail .link")
	if got := p.Text("#crumbs"); got != "all›main›load›get" {
		t.Errorf("zoomed to %q", got)
	}
	if file := os.Getenv("RTRACE_SCREENSHOT"); file != "" { // for a person to look at
		p.Click("#reset")
		if err := os.WriteFile(file, p.Screenshot(), 0o600); err != nil {
			t.Error(err)
		}
	}
}

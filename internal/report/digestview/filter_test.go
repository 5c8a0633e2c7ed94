package digestview

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/testutil/browser"
	"rtrace-bpf/trace"
)

// placed is a block of a crowd: who allocated it, where and when, and when it was freed.
type placed struct {
	stack       string
	thread      int32
	size        uint64
	made, ended int64 // nanoseconds since the first call; ended is -1 for a block that was not freed
	temporary   bool
	id          uint64
}

// crowdThreads are the names of the threads of a crowd.
var crowdThreads = map[int32]string{43: "worker-1", 44: "worker-2", 45: hostile}

// crowd returns a trace of blocks of several threads, stacks and sizes, with the blocks.
func crowd(n int) (*digest.Result, []*placed) {
	r := rand.New(rand.NewPCG(7, 7))
	d := digest.New(digest.Options{})
	d.Add(&trace.Record{Kind: trace.KindHeader, Header: trace.Header{Arch: "x86_64", PointerSize: 8, Clock: trace.ClockMonotonic}})
	d.Add(&trace.Record{Kind: trace.KindProcess, PID: 42, Process: trace.Process{Name: "crowd", Depth: 10}})
	for tid, name := range crowdThreads {
		d.Add(&trace.Record{Kind: trace.KindThread, PID: 42, TID: tid, Thread: trace.Thread{Name: name}})
	}
	var all, now []*placed
	last := map[int32]*placed{}
	for i := range n {
		at := int64(i) * 1e6
		rec := &trace.Record{Kind: trace.KindCall, Time: 1e9 + at, PID: 42, TID: 43 + int32(r.IntN(3))}
		c := &rec.Call
		c.Seq = uint64(i + 1)
		if len(now) > 0 && r.IntN(5) < 2 {
			k := max(0, len(now)-1-r.IntN(20))
			b := now[k]
			now = slices.Delete(now, k, k+1)
			b.ended, b.temporary = at, b.thread == rec.TID && last[rec.TID] == b
			c.Op, c.Function, c.ID = trace.OpFree, "free", b.id
			d.Add(rec)
			continue
		}
		k := r.IntN(len(stacksOf))
		b := &placed{strings.Join(stacksOf[k], "\n"), rec.TID, uint64(1 + r.IntN(1<<(2+2*r.IntN(6)))), at, -1, false, uint64(16 * (i + 1))}
		last[b.thread] = b
		all, now = append(all, b), append(now, b)
		c.Op, c.Function, c.ID, c.Size = trace.OpAlloc, "malloc", b.id, b.size
		for j, name := range stacksOf[k] {
			c.Stack.Frames = append(c.Stack.Frames, uint64(1+j))
			c.Stack.Names = append(c.Stack.Names, name+" from /usr/lib/libwork.so")
		}
		c.Stack.End = trace.StackComplete
		d.Add(rec)
	}
	return d.Finish(), all
}

// selection is what a filter selects, in nanoseconds and bytes; to is the end of the trace without a
// range.
type selection struct {
	from, to  int64
	threads   []int32
	low, high uint64
	function  string
}

// sums are the amounts of selected blocks.
type sums struct{ kept, made, freed, temporary, atEnd live.Amount }

// of adds up the selected blocks of each key.
func (s *selection) of(all []*placed, key func(*placed) string) map[string]*sums {
	out := map[string]*sums{}
	for _, b := range all {
		if s.threads != nil && !slices.Contains(s.threads, b.thread) || b.size < s.low || s.high > 0 && b.size > s.high || !strings.Contains(b.stack, s.function) || b.made >= s.to {
			continue
		}
		k := key(b)
		if out[k] == nil {
			out[k] = new(sums)
		}
		x := out[k]
		if b.ended < 0 || b.ended >= s.to {
			x.atEnd.AddBlock(b.size)
		}
		if b.ended >= s.from && b.ended < s.to {
			x.freed.AddBlock(b.size)
		}
		if b.made < s.from {
			continue
		}
		x.made.AddBlock(b.size)
		if b.ended < 0 {
			x.kept.AddBlock(b.size)
		}
		if b.temporary {
			x.temporary.AddBlock(b.size)
		}
	}
	return out
}

// compare compares the cards and the tables of a page with the selected blocks.
func (s *selection) compare(t *testing.T, p *browser.Page, all []*placed, ranged bool) {
	t.Helper()
	whole := s.of(all, func(*placed) string { return "" })[""]
	cards := map[string]string{
		"live": figure.Bytes(whole.kept.Bytes), "allocated": figure.Bytes(whole.made.Bytes), "freed": figure.Bytes(whole.freed.Bytes),
		"temporary": figure.Percent(float64(whole.temporary.Blocks) / float64(whole.made.Blocks)),
	}
	if ranged {
		cards["range"] = figure.Bytes(whole.atEnd.Bytes)
	}
	for id, want := range cards {
		if got := p.Text("#card-" + id + " .big"); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
		if got := p.Text("#card-" + id + " h3"); !strings.HasSuffix(got, " filtered") {
			t.Errorf("%s: the title is %q", id, got)
		}
	}
	row := func(x *sums, label string) []string {
		out := []string{figure.Bytes(x.kept.Bytes)}
		if ranged {
			out = append(out, figure.Bytes(x.atEnd.Bytes))
		}
		return append(out, figure.Bytes(x.made.Bytes), figure.Count(x.made.Blocks), figure.Count(x.temporary.Blocks), label)
	}
	same := func(what string, got, want [][]string) {
		t.Helper()
		order := func(a, b []string) int { return cmp.Compare(a[len(a)-1], b[len(b)-1]) }
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%s:\n%q, want\n%q", what, got, want)
		}
	}
	var want [][]string
	for name, x := range s.of(all, func(b *placed) string { return fmt.Sprintf("%d %s", b.thread, crowdThreads[b.thread]) }) {
		want = append(want, row(x, name))
	}
	press(p, "tables", "Threads")
	same("threads", rows(p, "#who-table"), want)

	want = nil
	for stack, x := range s.of(all, func(b *placed) string { return b.stack }) {
		names := strings.Split(stack, "\n")
		r := []string{figure.Bytes(x.kept.Bytes), figure.Percent(float64(x.kept.Bytes) / float64(whole.kept.Bytes)), figure.Count(x.kept.Blocks)}
		if ranged {
			r = append(r, figure.Bytes(x.atEnd.Bytes))
		}
		want = append(want, append(r, figure.Bytes(x.made.Bytes), figure.Count(x.made.Blocks), figure.Count(x.temporary.Blocks), strings.Join(names[:min(4, len(names))], " ← ")))
	}
	press(p, "scopes", "All")
	same("stacks", rows(p, "#stack-table"), want)

	// Functions: their own blocks, and those with callees.
	press(p, "tables", "Functions")
	self := s.of(all, func(b *placed) string { name, _, _ := strings.Cut(b.stack, "\n"); return name })
	work := new(sums)
	for stack, x := range s.of(all, func(b *placed) string { return b.stack }) {
		if strings.Contains(stack, "\nwork\n") {
			work.made.Add(x.made)
		}
	}
	found := 0
	for _, r := range rows(p, "#who-table") {
		name := strings.TrimSuffix(r[len(r)-1], " from libwork.so")
		made := len(r) - 5
		if x := self[name]; x != nil {
			found++
			if r[0] != figure.Bytes(x.kept.Bytes) || r[made] != figure.Bytes(x.made.Bytes) {
				t.Errorf("function %s: %q, want %s of %s", name, r, figure.Bytes(x.kept.Bytes), figure.Bytes(x.made.Bytes))
			}
		}
		if name == "work" && r[made+1] != figure.Bytes(work.made.Bytes) {
			t.Errorf("work with callees: %q, want %s", r, figure.Bytes(work.made.Bytes))
		}
	}
	if found != len(self) {
		t.Errorf("%d functions, want %d", found, len(self))
	}
	// The flame graph and the sizes show the same blocks.
	var flame, sizes float64
	p.Eval("report.flame.root.uses[5]", &flame)
	p.Eval("report.resource.sizes.reduce((s, b) => s + b[3], 0)", &sizes)
	if uint64(flame) != whole.made.Bytes || uint64(sizes) != whole.made.Bytes {
		t.Errorf("flame graph %v, sizes %v, want %d", flame, sizes, whole.made.Bytes)
	}
}

// fill writes a text into a field.
func fill(p *browser.Page, id, text string) {
	p.Eval(fmt.Sprintf("(e => { e.value = %q; e.dispatchEvent(new Event('change')); })(document.getElementById(%q))", text, id), nil)
}

// What the page shows of each filter, and of several, are the blocks of the calls that it selects.
func TestFilters(t *testing.T) {
	r, all := crowd(6000)
	p := open(t, r, 1200, 900)
	width := int64(r.Intervals.Width)
	end := int64(1) << 62
	whole := selection{to: end}
	before := p.Text("#cards")

	fill(p, "by-thread", "44")
	s := whole
	s.threads = []int32{44}
	s.compare(t, p, all, false)
	if got := p.Text("#filtered"); got != "Filtered: only blocks by thread 44 worker-2" {
		t.Errorf("%q", got)
	}
	fill(p, "by-thread", "WORKER")
	s.threads = []int32{43, 44}
	s.compare(t, p, all, false)
	fill(p, "from-size", "3") // 4² bytes
	fill(p, "to-size", "4")
	s.low, s.high = 16, 255
	s.compare(t, p, all, false)
	fill(p, "by-function", "PARSE")
	s.function = "parse"
	s.compare(t, p, all, false)
	if got, want := p.Text("#filtered"), "Filtered: only blocks by 2 threads with “WORKER”, of 16 B to 255 B, in or below “PARSE”"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// The dashed line ends at what is live at the end.
	var lives []float64
	p.Eval("[...report.resource.lives.slice(-1)]", &lives)
	if want := s.of(all, func(*placed) string { return "" })[""].kept.Bytes; uint64(lives[0]) != want || !strings.Contains(p.Text("#curve .key"), "match the filter") {
		t.Errorf("live at the end %v, want %d", lives, want)
	}
	// A range, with all other filters and without.
	drag(p, 0.25, 0.5)
	var chosen [2]int64
	p.Eval("report.filter.range", &chosen)
	if from, to := r.Duration/4/width, r.Duration/2/width+1; chosen != [2]int64{from, to} {
		t.Fatalf("dragged over intervals %v, want %d to %d", chosen, from, to)
	}
	s.from, s.to = chosen[0]*width, chosen[1]*width
	s.compare(t, p, all, true)
	fill(p, "by-function", hostile)
	s.function = hostile
	s.compare(t, p, all, true)
	p.Click("#clear")
	if got := p.Text("#cards"); got != before || p.Text("#filtered") != "" {
		t.Errorf("cleared: %q, want %q", got, before)
	}
	drag(p, 0.25, 0.5)
	s = selection{from: s.from, to: s.to}
	s.compare(t, p, all, true)

	fill(p, "by-thread", "nobody")
	if got := p.Text("#stack-table"); got != "No block matches the filter." {
		t.Errorf("nobody: %q", got)
	}
}

// drag presses the button in the first panel and releases it further right; positions are fractions of
// the axis.
func drag(p *browser.Page, from, to float64) {
	var box struct{ X, Y, Width float64 }
	p.Eval("(e => { e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); return {x: b.x, y: b.y + 80, width: b.width}; })(document.querySelector('#curve svg'))", &box)
	at := func(f float64) float64 { return box.X + 78 + f*(box.Width-78-14) }
	p.Drag(at(from), at(to), box.Y)
}

// The keyboard moves the range and its end, and clears it.
func TestRangeByKeys(t *testing.T) {
	r, _ := crowd(2000)
	p := open(t, r, 1200, 900)
	n := len(r.Intervals.Events)
	p.Eval("document.querySelector('#curve svg').focus()", nil)
	for _, k := range []struct {
		key  string
		want string
	}{
		{"Home", "none"},
		{"Enter", "0 1"},
		{"ArrowRight", "1 2"},
		{"Shift+ArrowRight", "1 3"},
		{"ArrowRight", "2 4"},
		{"ArrowLeft", "1 3"},
		{"Shift+ArrowLeft", "1 2"},
		{"End", fmt.Sprint(n-1, n)},
		{"ArrowRight", fmt.Sprint(n-1, n)},
		{"Home", "0 1"},
		{"ArrowLeft", "0 1"},
		{"Escape", "none"},
	} {
		p.Key(k.key)
		var got, value string
		p.Eval("report.filter.range ? report.filter.range.join(' ') : 'none'", &got)
		p.Eval("document.activeElement.getAttribute('aria-valuetext')", &value)
		if got != k.want || (got == "none") != (value == "no range") {
			t.Fatalf("%s: range %q (%q), want %q", k.key, got, value, k.want)
		}
	}
	// By calls, the range has the same intervals.
	p.Key("Enter")
	press(p, "axes", "Calls")
	if got, want := p.Text("#filtered"), fmt.Sprintf("Filtered: only blocks allocated by calls 1 to %d", r.Intervals.Events[0]); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A narrow page with filters is readable, light and dark.
func TestNarrowFilters(t *testing.T) {
	r, _ := crowd(500)
	p := open(t, r, 360, 800)
	fill(p, "by-thread", "worker")
	drag(p, 0.2, 0.6)
	isReadable(t, p)
}

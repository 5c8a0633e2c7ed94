package digestview

import (
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/trace"
)

// The axis spans the recording, what is missing is shaded in its place, and the largest resource is
// shown first.
func TestRecordingOfPage(t *testing.T) {
	const ms = int64(1e6)
	call := func(at int64, resource uint32, id, size uint64) *trace.Record {
		return &trace.Record{Kind: trace.KindCall, Time: at * ms, PID: 1, Call: trace.Call{Op: trace.OpAlloc, Resource: resource, ID: id, Size: size}}
	}
	d := digest.New(digest.Options{})
	for _, r := range []*trace.Record{
		{Kind: trace.KindHeader, Time: 1000 * ms, Header: trace.Header{Clock: trace.ClockMonotonic, ClockTime: 1000 * ms, WallTime: 86_400_000 * ms}},
		{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory"}},
		{Kind: trace.KindResource, Resource: trace.Resource{ID: 2, Type: "mmap", Desc: "mappings in bytes"}},
		{Kind: trace.KindRSS, Time: 1000 * ms, PID: 1, RSS: trace.RSS{Bytes: 1 << 20}},
		call(3000, 1, 1, 100), call(3001, 2, 1, 1<<20), call(5000, 1, 2, 100),
		{Kind: trace.KindLost, Time: 8000 * ms, Lost: trace.Lost{Reason: trace.LostPaused, Count: 1, Since: 6000 * ms}},
		{Kind: trace.KindLost, Time: 9000 * ms, Lost: trace.Lost{Reason: "ring full", Count: 1234}},
		call(9000, 1, 3, 100),
		{Kind: trace.KindRSS, Time: 11_000 * ms, PID: 1, RSS: trace.RSS{Bytes: 3 << 20}},
	} {
		d.Add(r.Clone())
	}
	p := open(t, d.Finish(), 1200, 900)
	if got := p.Text("#resources [aria-pressed=true]"); got != "mmap" {
		t.Errorf("opens on %q", got)
	}
	press(p, "resources", "memory")
	var spans []struct {
		From, To float64
		Text     string
	}
	p.Eval(`[...document.querySelectorAll('#curve svg:first-child .span')].map(e => ({from: (+e.getAttribute('x') - EDGE.left) / report.curves.inner,
		to: (+e.getAttribute('x') - EDGE.left + +e.getAttribute('width')) / report.curves.inner, text: e.textContent}))`, &spans)
	if len(spans) != 2 || !near(spans[0].From, 0.5) || !near(spans[0].To, 0.7) || !near(spans[1].From, 0.8) ||
		spans[0].Text != "1 pause: nothing was recorded, 5 s to 7 s" || !strings.HasPrefix(spans[1].Text, "1,234 events lost") {
		t.Errorf("shaded: %+v", spans)
	}
	if got := p.Text("#curve"); !strings.Contains(got, "RSS, read 2 times: 1 MiB to 3 MiB") || !strings.Contains(got, "paused: nothing recorded") || !strings.Contains(got, "events lost") {
		t.Errorf("curves: %q", got)
	}
	p.Eval("document.querySelector('#curve svg').focus()", nil)
	p.Key("Home")
	if got := p.Text("#at"); !strings.HasPrefix(got, "2 s to ") || !strings.Contains(got, "00:00:02 UTC") {
		t.Errorf("at the first call: %q", got)
	}
	press(p, "axes", "Calls")
	var shaded int
	if p.Eval("document.querySelectorAll('#curve .span').length", &shaded); shaded != 0 {
		t.Errorf("%d spans on the axis of calls", shaded)
	}
	press(p, "resources", "mmap")
	if got := p.Text("#curve"); strings.Contains(got, "RSS") {
		t.Errorf("RSS next to mappings: %q", got)
	}
}

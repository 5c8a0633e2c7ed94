package digest_test

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/analysis/loss"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

func run(o digest.Options, records []*trace.Record) *digest.Result {
	d := digest.New(o)
	for _, r := range records {
		d.Add(r.Clone())
	}
	return d.Finish()
}

func text(r *digest.Result, frames []uint32) string {
	var names []string
	for _, n := range frames {
		f := r.Frames[n]
		names = append(names, fmt.Sprintf("%s() from %s", f.Function, f.Module))
	}
	return strings.Join(names, "\n")
}

// All sums agree with the simple model for several random traces.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(6) {
		records := generate(seed, 3000)
		r := run(digest.Options{Points: 64}, records)
		if len(r.Resources) != 2 || r.Calls != 3000 || r.Execs != 1 {
			t.Fatalf("%d resources, %d calls, %d execs", len(r.Resources), r.Calls, r.Execs)
		}
		for i, of := range r.Resources {
			m := solve(records, uint32(i+1), i == 1)
			check(t, fmt.Sprintf("seed %d, %s", seed, of.Type), r, of, m)
		}
	}
}

func check(t *testing.T, name string, r *digest.Result, of *digest.Resource, m *model) {
	t.Helper()
	same := func(what string, got, want any) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, what, d)
		}
	}
	same("total", of.Total, m.total)
	same("freed", of.Freed, m.freed)
	same("peak", [2]uint64{of.PeakEvent, of.Peak.Bytes}, [2]uint64{m.peak, m.total.AtPeak.Bytes})
	places, oldest := map[string]*digest.Use{}, map[string]uint64{}
	for i := range of.Places {
		p := &of.Places[i]
		places[text(r, p.Frames)] = &p.Use
		if p.Event != 0 {
			oldest[text(r, p.Frames)] = p.Event
		}
	}
	same("stacks", places, m.stacks)
	same("oldest", oldest, m.oldest)
	threads := map[int32]*digest.Use{}
	for i := range of.Threads {
		threads[int32(of.Threads[i].ID)] = &of.Threads[i].Use
	}
	same("threads", threads, m.threads)
	self, whole, modules := map[string]*digest.Use{}, map[string]*digest.Use{}, live.Amount{}
	for i := range of.Functions {
		f := &of.Functions[i]
		key := fmt.Sprintf("%s() from %s", f.Function, f.Module)
		if f.Self.Allocated.Blocks > 0 {
			self[key] = &f.Self
		}
		whole[key] = &f.Total
	}
	same("functions", self, m.self)
	same("functions with callees", whole, m.whole)
	for i := range of.Modules {
		modules.Blocks += of.Modules[i].Self.Allocated.Blocks
		modules.Bytes += of.Modules[i].Self.Allocated.Bytes
	}
	same("modules", modules, m.total.Allocated)
	processes := digest.Use{}
	for i := range of.Processes {
		processes.Live.Bytes += of.Processes[i].Live.Bytes
	}
	same("processes", processes.Live.Bytes, m.total.Live.Bytes)
	checkBins(t, name, of, m)
	checkCurves(t, name, of, m)
	checkCells(t, name, r, of, m)
}

func checkBins(t *testing.T, name string, of *digest.Resource, m *model) {
	t.Helper()
	for _, b := range of.Sizes {
		var want live.Amount
		for size, a := range m.sizes {
			if b.From <= size && size <= b.To {
				want.Blocks += a.Blocks
				want.Bytes += a.Bytes
			}
		}
		if b.Amount != want {
			t.Errorf("%s: sizes %d to %d: %v, want %v", name, b.From, b.To, b.Amount, want)
		}
	}
	var byEvent, byTime uint64
	for i, bins := range [][]digest.Bin{of.LifeEvents, of.LifeTimes} {
		for _, b := range bins {
			var want live.Amount
			for _, l := range m.lives {
				n := l.events
				if i == 1 {
					n = uint64(l.time)
				}
				if b.From <= n && n <= b.To {
					grow(&want, l.size)
				}
			}
			if b.Amount != want {
				t.Errorf("%s: lives %d to %d: %v, want %v", name, b.From, b.To, b.Amount, want)
			}
			if i == 0 {
				byEvent += b.Blocks
			} else {
				byTime += b.Blocks
			}
		}
	}
	// The lifetime of a block that was unknown is not counted.
	if lives := uint64(len(m.lives)); byEvent != lives || byTime != lives || lives == 0 || lives == m.freed.Blocks {
		t.Errorf("%s: %d and %d lives, want %d of %d that were freed", name, byEvent, byTime, lives, m.freed.Blocks)
	}
}

func checkCurves(t *testing.T, name string, of *digest.Resource, m *model) {
	t.Helper()
	for _, c := range []digest.Curve{of.ByEvent, of.ByTime} {
		if len(c.Points) > 64 || bits.OnesCount64(c.Width) > 2 {
			t.Errorf("%s: %d points of %d", name, len(c.Points), c.Width)
		}
		var allocated, freed live.Amount
		most := uint64(0)
		for _, p := range c.Points {
			allocated.Bytes += p.Allocated.Bytes
			freed.Blocks += p.Freed.Blocks
			most = max(most, p.Bytes.Max)
		}
		if most != m.total.AtPeak.Bytes || allocated.Bytes != m.total.Allocated.Bytes || freed.Blocks != m.freed.Blocks {
			t.Errorf("%s: curve has %d, %v, %v", name, most, allocated, freed)
		}
	}
	// By event, the last value of each interval is the live amount at that
	// time, unless only calls of other resources followed.
	for _, p := range of.ByEvent.Points {
		if p.Events > 0 && p.Bytes.Last != m.live[p.Last-1] {
			t.Errorf("%s: after event %d %d bytes, want %d", name, p.Last, p.Bytes.Last, m.live[p.Last-1])
		}
	}
}

// Frames in an unmapped library keep its names, and later frames at the same
// addresses get the names of the new mapping.
func TestNamesOfBefore(t *testing.T) {
	mapped := ""
	call := func(id, frame uint64) *trace.Record {
		return &trace.Record{Kind: trace.KindCall, PID: 7, Call: trace.Call{
			Op: trace.OpAlloc, ID: id, Size: 10, Stack: trace.Stack{Frames: []uint64{frame, 0x9000}, End: trace.StackComplete},
		}}
	}
	mapping := func(kind trace.Kind, path string) *trace.Record {
		return &trace.Record{Kind: kind, PID: 7, Mapping: trace.Mapping{Start: 0x1000, End: 0x2000, Path: path}}
	}
	o := digest.Options{
		Observe: func(r *trace.Record) {
			switch r.Kind {
			case trace.KindMapping:
				mapped = r.Mapping.Path
			case trace.KindUnmapping, trace.KindExec:
				mapped = ""
			}
		},
		Module: func(_ int32, addr uint64) string {
			if addr > 0x1000 && addr <= 0x2000 {
				return mapped
			}
			return ""
		},
	}
	for _, tt := range []struct {
		name  string
		after []*trace.Record
		want  map[string]uint64 // blocks of each module
	}{
		{"unmapped", []*trace.Record{mapping(trace.KindUnmapping, ""), call(2, 0x1800)}, map[string]uint64{"/a": 1, "": 1}},
		{"another one", []*trace.Record{mapping(trace.KindUnmapping, ""), mapping(trace.KindMapping, "/b"), call(2, 0x1800)}, map[string]uint64{"/a": 1, "/b": 1}},
		{"replaced", []*trace.Record{mapping(trace.KindMapping, "/b"), call(2, 0x1800), call(3, 0x2000)}, map[string]uint64{"/a": 1, "/b": 2}},
		{"mapped twice", []*trace.Record{mapping(trace.KindMapping, "/a"), call(2, 0x1800)}, map[string]uint64{"/a": 2}},
		{"exec", []*trace.Record{{Kind: trace.KindExec, PID: 7}, mapping(trace.KindMapping, "/b"), call(2, 0x1800)}, map[string]uint64{"/a": 1, "/b": 1}},
		{"elsewhere", []*trace.Record{{Kind: trace.KindUnmapping, PID: 7, Mapping: trace.Mapping{Start: 0x5000, End: 0x6000}}, mapping(trace.KindMapping, "/a")}, map[string]uint64{"/a": 1}},
	} {
		mapped = ""
		r := run(o, append([]*trace.Record{mapping(trace.KindMapping, "/a"), call(1, 0x1800)}, tt.after...))
		got := map[string]uint64{}
		for _, g := range r.Resources[0].Modules {
			if n := g.Self.Allocated.Blocks; n > 0 {
				got[g.Module] = n
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
	mapped = ""
	// Late mappings name the frames of earlier calls.
	r := run(o, []*trace.Record{call(1, 0x1800), mapping(trace.KindMapping, "/late")})
	if m := r.Frames[r.Resources[0].Places[0].Frames[0]].Module; m != "/late" {
		t.Errorf("module %q", m)
	}
}

func TestFacts(t *testing.T) {
	call := func(at int64, mask uint32) *trace.Record {
		return &trace.Record{Kind: trace.KindCall, Time: at, Call: trace.Call{Op: trace.OpAlloc, ID: uint64(at), Size: 1, Context: mask, Function: "f"}}
	}
	day := int64(24 * 3600e9)
	r := run(digest.Options{Points: 4}, []*trace.Record{
		{Kind: trace.KindHeader, Header: trace.Header{Clock: trace.ClockDay, Origin: "x"}},
		{Kind: trace.KindProcess, PID: 3, Process: trace.Process{Name: "/bin/p", Depth: 5, WallTime: 9}},
		{Kind: trace.KindContext, Context: trace.Context{ID: 1, Name: "load"}},
		call(day-3e9, 0), call(day-2e9, 1), call(1e9, 1), call(2e9, 0),
		{Kind: trace.KindContext, Context: trace.Context{ID: 2, Name: "mark"}},
		{Kind: trace.KindContext, Context: trace.Context{ID: 2, Name: "mark"}},
		call(5e9, 0),
		{Kind: trace.KindLost, Lost: trace.Lost{Reason: "ring full", Count: 3}},
		{Kind: trace.KindLost, Lost: trace.Lost{Reason: "ring full", Count: 4}},
		{Kind: trace.KindLost, Time: 9e9, Lost: trace.Lost{Reason: trace.LostPaused, Count: 1, Since: 7e9}},
		{Kind: trace.KindExec, PID: 3, Exec: trace.Exec{Name: "q"}},
		{Kind: trace.KindExec, PID: 4, Exec: trace.Exec{Name: "child"}},
		{Kind: trace.KindEnd},
	})
	if r.Duration != 8e9 || r.Process.Name != "/bin/p" || r.PID != 3 || r.Depth != 5 || !r.Coarse || !r.Ended || r.Became != "q" {
		t.Errorf("%+v", r.Facts)
	}
	if d := cmp.Diff(loss.Table{"ring full": {Count: 7, HidesFrees: true}, "paused": {Count: 1, Gap: true, Missing: 2e9, HidesFrees: true}}, r.Lost); d != "" {
		t.Errorf("lost (-want +got):\n%s", d)
	}
	want := []digest.Mark{
		{Name: "load", ID: 1, Calls: 2, ByEvent: [][2]uint64{{1, 3}}, ByTime: r.Marks[0].ByTime},
		{Name: "mark", ID: 2, Event: 4, Time: 5e9},
	}
	if d := cmp.Diff(want, r.Marks); d != "" {
		t.Errorf("marks (-want +got):\n%s", d)
	}
	if s := r.Marks[0].ByTime; len(s) != 2 || s[0][0] > 1e9 || s[0][1] <= 1e9 || s[1][0] > 4e9 || s[1][1] <= 4e9 || s[1][1] > 8e9 {
		t.Errorf("in the context from and to %v", s)
	}
	if got := r.Resources[0].APIs; len(got) != 1 || got[0] != (digest.API{Name: "f", Op: trace.OpAlloc, Calls: 5, Bytes: 5}) {
		t.Errorf("%v", got)
	}
}

// Several traces in one file without process IDs have separate blocks.
func TestSeveralTraces(t *testing.T) {
	header := &trace.Record{Kind: trace.KindHeader}
	call := func(op trace.Op, id uint64) *trace.Record {
		return &trace.Record{Kind: trace.KindCall, Time: 5, Call: trace.Call{Op: op, ID: id, Size: 8}}
	}
	r := run(digest.Options{}, []*trace.Record{header, call(trace.OpAlloc, 1), header, call(trace.OpFree, 1), call(trace.OpAlloc, 2)})
	of := r.Resources[0]
	if of.Total.Live.Blocks != 2 || of.Unmatched != 1 || len(of.Processes) != 2 || of.Processes[1].PID != -1 && of.Processes[0].PID != -1 || r.Duration != 0 {
		t.Errorf("%+v", of)
	}
}

// Memory does not grow with the calls, whatever they do.
func TestBounded(t *testing.T) {
	d := digest.New(digest.Options{Points: 16, Framer: sites.Framer{}})
	rec := &trace.Record{Kind: trace.KindCall}
	var names [5000]string
	for i := range names {
		names[i] = fmt.Sprint("f", i)
	}
	frames := make([]uint64, 2)
	add := func(i uint64, op trace.Op) {
		rec.Time = int64(i) * 1000
		rec.Call = trace.Call{Op: op, ID: 16 * (i % 100), Size: i % 1000, Function: names[i%5000], Context: 1 << (i % 32), Resource: uint32(i % 3)}
		frames[0], frames[1] = i%50, 7
		rec.Call.Stack = trace.Stack{Frames: frames, End: trace.StackComplete}
		d.Add(rec)
	}
	for i := range uint64(2000) {
		add(i, trace.OpAlloc)
		d.Add(&trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: uint32(i + 10), Type: fmt.Sprint("r", i)}})
		d.Add(&trace.Record{Kind: trace.KindLost, Lost: trace.Lost{Reason: fmt.Sprint("r", i), Count: 1}})
		d.Add(&trace.Record{Kind: trace.KindContext, Context: trace.Context{ID: 1, Name: fmt.Sprint("c", i)}})
		d.Add(&trace.Record{Kind: trace.KindCall, Call: trace.Call{Resource: uint32(i + 10), Op: trace.OpAlloc, ID: i}})
	}
	allocs := testing.AllocsPerRun(50, func() {
		for i := range uint64(1000) {
			add(i, trace.OpAlloc)
		}
	})
	if allocs > 20 {
		t.Errorf("%v allocations for 1000 calls", allocs)
	}
	r := d.Finish()
	if len(r.Resources) > 64 || len(r.Resources[0].APIs) > 1100 || len(r.Lost) > 300 || len(r.Marks) > 1<<10 || r.Unfollowed == 0 {
		t.Errorf("%d resources, %d functions, %d reasons, %d marks, %d unfollowed", len(r.Resources), len(r.Resources[0].APIs), len(r.Lost), len(r.Marks), r.Unfollowed)
	}
}

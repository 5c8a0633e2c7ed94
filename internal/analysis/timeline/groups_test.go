package timeline_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

func TestGroupKeys(t *testing.T) {
	tl := timeline.New(timeline.Options{Functions: true, Threads: true})
	for i, c := range []trace.Call{
		{},
		{Caller: trace.Caller{Function: "f", File: "a.c", Line: 1}, Thread: 1 << 40},
		{Caller: trace.Caller{Function: "f", File: "a.c", Line: 2}},
		{Stack: trace.Stack{Frames: []uint64{7, 8}}},
		{Stack: trace.Stack{Frames: []uint64{7, 8}, Names: []string{"in ??", "main()"}}},
		{Stack: trace.Stack{Frames: []uint64{9}, Names: []string{"f() at a.c:3"}}},
		{Stack: trace.Stack{Frames: []uint64{9}, Names: []string{"from /lib/x"}}},
	} {
		c.Op, c.ID, c.Size = trace.OpAlloc, uint64(i+1), 1<<i
		tl.Add(&trace.Record{Kind: trace.KindCall, Call: c})
	}
	got := map[sites.Frame]uint64{}
	for _, g := range tl.Functions() {
		got[g.Frame] = g.Live.Bytes
	}
	want := map[sites.Frame]uint64{
		{}:                                  1,
		{Place: sites.Place{Function: "f"}}: 2 + 4 + 32,
		{Addr: 7}:                           8 + 16,
		{Addr: 9, Place: sites.Place{Module: "/lib/x"}}: 64,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("functions (-want +got)\n%s", diff)
	}
	threads := tl.Threads()
	if len(threads) != 2 || threads[0].Thread != 0 || threads[1].Thread != 1<<40 || threads[1].Live.Bytes != 2 {
		t.Errorf("threads %+v", threads)
	}
}

// A clock of the day that restarts, and times that are missing or go back.
func TestClock(t *testing.T) {
	const ms = int64(1e6)
	const day = 24 * 3600 * 1000
	tl := timeline.New(timeline.Options{Axis: timeline.ByTime})
	tl.Add(&trace.Record{Kind: trace.KindHeader, Header: trace.Header{Clock: trace.ClockDay}})
	for _, at := range []int64{(day - 2) * ms, (day - 1) * ms, 0, 1 * ms, 5 * ms, 4 * ms} {
		tl.Add(&trace.Record{Kind: trace.KindCall, Time: at, Call: trace.Call{Op: trace.OpAlloc, ID: uint64(at + 1), Size: 1}})
	}
	if got := tl.Totals().Duration; got != 7*ms {
		t.Errorf("duration %d ms, want 7", got/ms)
	}
	points := tl.Points()
	if last := points[len(points)-1]; last.Last != 6 || last.Bytes.Last != 6 {
		t.Errorf("last point %+v", last)
	}
}

// Blocks of another resource, and an exec at the peak.
func TestResourceAndExec(t *testing.T) {
	tl := timeline.New(timeline.Options{Resource: "file", Functions: true})
	for _, r := range []*trace.Record{
		{Kind: trace.KindResource, Resource: trace.Resource{ID: 2, Type: "file"}},
		{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, ID: 3, Size: 1, Resource: 2, Caller: trace.Caller{Function: "open_it"}}},
		{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, ID: 16, Size: 100, Caller: trace.Caller{Function: "other"}}},
		{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, ID: 4, Size: 1, Resource: 2, Caller: trace.Caller{Function: "open_it"}}},
		{Kind: trace.KindExec},
	} {
		tl.Add(r)
	}
	want := []timeline.Group{{
		Frame: sites.Frame{Place: sites.Place{Function: "open_it"}}, Allocated: live.Amount{Blocks: 2, Bytes: 2}, AtPeak: live.Amount{Blocks: 2, Bytes: 2}, Peak: 2,
	}}
	if diff := cmp.Diff(want, tl.Functions()); diff != "" {
		t.Errorf("functions (-want +got)\n%s", diff)
	}
	if got := tl.Totals(); got.Events != 3 || got.PeakBytesEvent != 3 || got.Live.Blocks != 0 || len(tl.Threads()) != 0 {
		t.Errorf("%+v", got)
	}
}

// Once blocks have their places, a call allocates no memory.
func TestAllocations(t *testing.T) {
	tl := timeline.New(timeline.Options{Threads: true, Functions: true})
	alloc := trace.Record{Kind: trace.KindCall, TID: 1, Call: trace.Call{Op: trace.OpAlloc, ID: 16, Size: 1, Caller: trace.Caller{Function: "f"}}}
	free := trace.Record{Kind: trace.KindCall, TID: 2, Call: trace.Call{Op: trace.OpFree, ID: 16, Caller: trace.Caller{Function: "g"}}}
	if n := testing.AllocsPerRun(100, func() { tl.Add(&alloc); tl.Add(&free) }); n != 0 {
		t.Errorf("%v allocations a pair", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	tl := timeline.New(timeline.Options{Threads: true, Functions: true})
	var calls [2048]trace.Record
	for i := range calls {
		c := &calls[i]
		c.Kind, c.TID = trace.KindCall, int32(i%4)
		c.Call = trace.Call{Op: trace.OpAlloc, ID: uint64(i%1024) * 16, Size: 24, Caller: trace.Caller{Function: "f"}}
		if i >= 1024 {
			c.Call.Op = trace.OpFree
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		tl.Add(&calls[i%len(calls)])
	}
}

package aggregate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

func call(at int64, tid int32, op trace.Op, id, size uint64) *trace.Record {
	return &trace.Record{
		Kind: trace.KindCall, Time: at, PID: 1, TID: tid,
		Call: trace.Call{Op: op, ID: id, Size: size, Stack: trace.Stack{Frames: []uint64{0x500}, End: trace.StackComplete}},
	}
}

func fill(records ...*trace.Record) *Engine {
	e := New()
	for _, r := range records {
		e.Add(r)
	}
	return e
}

// TestDetail checks sizes, lifetimes and threads.
func TestDetail(t *testing.T) {
	e := fill(
		call(1000, 1, trace.OpAlloc, 0x10, 0),
		call(1001, 1, trace.OpAlloc, 0x20, 100),
		call(1002, 2, trace.OpAlloc, 0x30, 127),
		call(1010, 3, trace.OpMove, 0x30, 128), // replaces a block
		call(1020, 1, trace.OpFree, 0x20, 0),
		&trace.Record{Kind: trace.KindLost, PID: 1, Lost: trace.Lost{Count: 1, Reason: trace.LostPaused}},
		call(1030, 1, trace.OpFree, 0x10, 0), // unknown: its lifetime does not count
	)
	want := Detail{
		Sizes: []Size{
			{Allocated: live.Amount{Blocks: 1}},
			{From: 1, To: 1},
			{From: 2, To: 3},
			{From: 4, To: 7},
			{From: 8, To: 15},
			{From: 16, To: 31},
			{From: 32, To: 63},
			{From: 64, To: 127, Allocated: live.Amount{Blocks: 2, Bytes: 227}},
			{From: 128, To: 255, Allocated: live.Amount{Blocks: 1, Bytes: 128}, Live: live.Amount{Blocks: 1, Bytes: 128}},
		},
		Lifetimes: []Lifetime{{From: 16, To: 31, Blocks: 1}},
		Threads: []Thread{
			{TID: 1, Thread: 1, Allocated: live.Amount{Blocks: 2, Bytes: 100}},
			{TID: 2, Thread: 2, Allocated: live.Amount{Blocks: 1, Bytes: 127}},
			{TID: 3, Thread: 3, Allocated: live.Amount{Blocks: 1, Bytes: 128}},
		},
	}
	if d := cmp.Diff(want, e.Detail(0)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	s := e.State()
	if x := s.Sites[0]; x.Freed.Blocks != 2 || x.Replaced.Blocks != 1 || x.Unknown.Blocks != 1 || x.Live.Blocks != 0 || x.Oldest != -1 || x.First != 0 || x.Last != 10 {
		t.Errorf("%+v", x)
	}
	if s.Start != 1000 || s.Time != 30 || s.Lost.Gaps() != 1 {
		t.Errorf("%+v", s)
	}
}

// TestManyThreads counts the threads after the first ones of a site together.
func TestManyThreads(t *testing.T) {
	e := New()
	for i := range int32(100) {
		e.Add(call(0, 1+i, trace.OpAlloc, uint64(0x1000+i), 10))
	}
	for i := range int32(50) {
		e.Add(call(0, 1, trace.OpFree, uint64(0x1000+i), 0))
	}
	threads := e.Detail(0).Threads
	if len(threads) != threadsPerSite+1 {
		t.Fatalf("%d threads", len(threads))
	}
	others := threads[threadsPerSite]
	if !others.Others || others.Allocated.Blocks != 100-threadsPerSite || others.Live.Blocks != 50 {
		t.Errorf("%+v", others)
	}
}

// TestReplacedCode: stacks through code that replaces other code at the same
// addresses are other call sites, but not if the same file comes back.
func TestReplacedCode(t *testing.T) {
	mapping := func(start, end uint64, path string) *trace.Record {
		return &trace.Record{Kind: trace.KindMapping, PID: 1, Mapping: trace.Mapping{Start: start, End: end, Base: 0x400, Path: path}}
	}
	unmapping := &trace.Record{Kind: trace.KindUnmapping, PID: 1, Mapping: trace.Mapping{Start: 0x400, End: 0x600}}
	alloc := call(1, 1, trace.OpAlloc, 0x10, 1)
	for _, tt := range []struct {
		name    string
		records []*trace.Record
		want    int
	}{
		{"the same file", []*trace.Record{mapping(0x400, 0x600, "/a"), alloc, unmapping, mapping(0x400, 0x600, "/a"), alloc}, 1},
		{"another file", []*trace.Record{mapping(0x400, 0x600, "/a"), alloc, unmapping, mapping(0x400, 0x600, "/b"), alloc}, 2},
		{"another file over its end", []*trace.Record{mapping(0x400, 0x600, "/a"), alloc, mapping(0x4f0, 0x700, "/b"), alloc}, 2},
		{"another file elsewhere in it", []*trace.Record{mapping(0x400, 0x600, "/a"), alloc, mapping(0x580, 0x700, "/b"), alloc}, 1},
		{"another file over two", []*trace.Record{mapping(0x400, 0x4c0, "/a"), mapping(0x4c0, 0x600, "/b"), alloc, mapping(0x4a0, 0x5c0, "/c"), alloc}, 2},
		{"what is left of a file", []*trace.Record{mapping(0x400, 0x600, "/a"), mapping(0x480, 0x4a0, "/b"), alloc, mapping(0x4a0, 0x600, "/b"), alloc}, 2},
		{"mapped before the first call", []*trace.Record{mapping(0x400, 0x600, "/a"), mapping(0x400, 0x600, "/b"), alloc}, 1},
		{"exec", []*trace.Record{alloc, {Kind: trace.KindExec, PID: 1}, alloc}, 2},
		{"exec of another process", []*trace.Record{alloc, {Kind: trace.KindProcess, PID: 2}, {Kind: trace.KindCall, PID: 2, Call: trace.Call{Op: trace.OpFree, ID: 9}}, {Kind: trace.KindExec, PID: 2}, alloc}, 1},
	} {
		e := New()
		for _, r := range tt.records {
			e.Add(r)
		}
		if got := e.Len(); got != tt.want {
			t.Errorf("%s: %d sites, want %d", tt.name, got, tt.want)
		}
		// The current site is the last one.
		var through []int
		for n := range e.Through(1, 0x4ff, 0x510) {
			through = append(through, n)
		}
		if d := cmp.Diff([]int{tt.want - 1}, through); d != "" {
			t.Errorf("%s: sites through the address (-want +got):\n%s", tt.name, d)
		}
	}
}

// TestManyResources: calls of too many types of resources are counted.
func TestManyResources(t *testing.T) {
	e := New()
	for i := range uint32(100) {
		e.Add(&trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: i + 1, Type: string(rune('A' + i))}})
	}
	for i := range uint32(100) {
		r := call(0, 1, trace.OpAlloc, 1, 1)
		r.Call.Resource = i + 1
		e.Add(r)
	}
	if s := e.State(); len(s.Resources) != maxResources || s.Others != 100-maxResources {
		t.Errorf("%d types, %d other calls", len(s.Resources), s.Others)
	}
}

// TestDoubt: blocks that are younger than usual, and blocks from before.
func TestDoubt(t *testing.T) {
	e := New()
	at := int64(1000)
	for i := range uint64(200) {
		e.Add(call(at, 1, trace.OpAlloc, 0x1000+i, 8))
		e.Add(call(at+100, 1, trace.OpFree, 0x1000+i, 0))
		at += 1000
	}
	e.Add(call(at, 1, trace.OpAlloc, 0x10, 8))
	if d := e.State().Resources[0].Doubt; d.Reason != live.MostlyYoung || d.Young.Young != 1 || d.Usual != 300 {
		t.Errorf("%+v", d)
	}
	e.Add(call(at+1e6, 1, trace.OpFree, 0x99, 0))
	if d := e.State().Resources[0].Doubt; d.Reason != live.NoDoubt || d.Before != 1 {
		t.Errorf("%+v", d)
	}
	e.Add(&trace.Record{Kind: trace.KindLost, Lost: trace.Lost{Count: 1, Reason: "ring full"}})
	if d := e.State().Resources[0].Doubt; d.Before != 0 {
		t.Errorf("after a loss: %+v", d)
	}
}

// TestMidnight: a clock of the day restarts; refreshes between do not matter.
func TestMidnight(t *testing.T) {
	const day = 24 * 3600 * int64(1e9)
	e := fill(&trace.Record{Kind: trace.KindHeader, Header: trace.Header{Clock: trace.ClockDay}}, call(day-3e9, 1, trace.OpAlloc, 1, 8))
	e.Interval(day - 1e9)
	e.Interval(1e9)
	if s := e.State(); s.Interval != 2e9 || s.Time != 0 {
		t.Errorf("interval of %v, last call at %d", s.Interval, s.Time)
	}
	e.Add(call(5e9, 1, trace.OpAlloc, 2, 8))
	if s := e.State(); s.Start != day-3e9 || s.Time != 8e9 || s.Sites[0].Last != 8e9 || s.Sites[0].Oldest != 0 {
		t.Errorf("%+v", s)
	}
}

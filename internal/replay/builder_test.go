package replay_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/replay"
	"rtrace-bpf/trace"
)

// program builds the program of some records.
func program(t testing.TB, order replay.Order, records []*trace.Record) *replay.Program {
	t.Helper()
	b := replay.NewBuilder(order)
	for _, r := range records {
		if err := b.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(b.Flush(), b.Close()); err != nil {
		t.Fatal(err)
	}
	p, err := b.Program()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// file returns the numbers of a program's file.
func file(t testing.TB, p *replay.Program) []uint64 {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	if b.Len()%8 != 0 {
		t.Fatalf("%d bytes", b.Len())
	}
	words := make([]uint64, b.Len()/8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(b.Bytes()[8*i:])
	}
	return words
}

// For any turns of the threads, a replay makes the calls of the trace on the
// right blocks and does not deadlock.
func TestRandomTurns(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		threads, most := 1+r.IntN(6), 1+r.IntN(60)
		calls := 4000
		if seed%4 == 0 { // beyond the slack, slots are taken over
			threads, most, calls = 2+r.IntN(2), 3000, 30_000
		}
		m := random(seed, threads, calls, most)
		for _, order := range []replay.Order{replay.OrderDependencies, replay.OrderTrace} {
			p := program(t, order, m.records)
			run := load(t, p)
			run.run(r)
			compare(t, run.calls, m.calls)
			if order == replay.OrderTrace {
				for i := range m.calls {
					if run.calls[i].thread != m.calls[i].thread {
						t.Fatalf("seed %d: call %d is of thread %d, want %d", seed, i, run.calls[i].thread, m.calls[i].thread)
					}
				}
			}
			s := p.Stats
			if s.Calls != uint64(len(m.calls)) || s.Threads != threads || s.Lanes != threads || s.LeftBlocks != uint64(len(m.live)) {
				t.Errorf("seed %d: %+v; want %d calls, %d threads, %d blocks left", seed, s, len(m.calls), threads, len(m.live))
			}
			if s.Slots > int(s.PeakBlocks)+256*threads {
				t.Errorf("seed %d: %d slots for %d blocks of %d threads", seed, s.Slots, s.PeakBlocks, threads)
			}
			if threads == 1 && (s.Slots != int(s.PeakBlocks) || s.Waits != 0) {
				t.Errorf("seed %d: %d slots for %d blocks, %d waits", seed, s.Slots, s.PeakBlocks, s.Waits)
			}
		}
	}
}

// For any trace, however wrong, the program is sound: no slot holds two blocks,
// none is freed twice, and it ends.
func TestRandomRecords(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		kinds := []trace.Kind{trace.KindExit, trace.KindExec, trace.KindProcess, trace.KindLost, trace.KindResource}
		functions := []string{"malloc", "realloc", "free", "memalign", "aligned_alloc", "x"}
		var records []*trace.Record
		for range 5000 {
			rec := &trace.Record{Kind: trace.KindCall, PID: 5, TID: 5 + r.Int32N(4)}
			if r.IntN(100) == 0 {
				rec.Kind = kinds[r.IntN(len(kinds))]
				rec.Resource = trace.Resource{ID: 1 + r.Uint32N(2), Type: "memory"}
			}
			rec.Call = trace.Call{
				Op: trace.Op(r.IntN(5)), Function: functions[r.IntN(len(functions))], Resource: r.Uint32N(3),
				ID: r.Uint64N(50), OldID: r.Uint64N(50), Size: r.Uint64() >> r.IntN(64),
			}
			records = append(records, rec)
		}
		p := program(t, replay.Order(seed%2), records)
		run := load(t, p)
		run.run(r)
		left := 0
		for _, block := range run.blocks {
			if block != 0 {
				left++
			}
		}
		if uint64(left) != p.Stats.LeftBlocks || uint64(len(run.calls)) != p.Stats.Calls {
			t.Errorf("seed %d: %d blocks left after %d calls: %+v", seed, left, len(run.calls), p.Stats)
		}
	}
}

// One thread allocates and another frees: there are few slots although the
// first never frees, and the first cannot get ahead of the second without
// limit.
func TestProducer(t *testing.T) {
	m := newMaker()
	for i := range 20_000 {
		m.alloc(0, "malloc", uint64(1+i%50)<<12, 64)
		m.free(1, uint64(1+i%50)<<12)
	}
	p := program(t, replay.OrderDependencies, m.records)
	if p.Stats.PeakBlocks != 1 || p.Stats.Slots > 1+2*256 {
		t.Errorf("%d slots for %d blocks", p.Stats.Slots, p.Stats.PeakBlocks)
	}
	run := load(t, p)
	for run.step(0) {
	}
	if n := len(run.calls); n != p.Stats.Slots {
		t.Errorf("the first thread gets %d blocks ahead with %d slots", n, p.Stats.Slots)
	}
	run.run(rand.New(rand.NewPCG(1, 1)))
	compare(t, run.calls, m.calls)
}

// Short-lived threads share the threads of the replay, but not with the main
// thread, and threads that live at the same time do not share one.
func TestLanes(t *testing.T) {
	m := newMaker()
	m.alloc(3, "malloc", 0x1000, 1) // makes the first call; the main thread is 0
	m.alloc(0, "malloc", 0x2000, 2)
	m.free(3, 0x1000)
	for i := range 1000 { // one after the other
		m.alloc(10+i, "malloc", 0x3000, 3)
		m.free(10+i, 0x3000)
		m.alloc(10+i, "malloc", 0x3000, 3)
		m.free(0, 0x3000)
	}
	for i := range 5 { // five at once
		m.alloc(2000+i, "malloc", uint64(5+i)<<12, 4)
	}
	for i := range 5 {
		m.free(2000+i, uint64(5+i)<<12)
	}
	p := program(t, replay.OrderDependencies, m.records)
	if p.Stats.Threads != 1007 || p.Stats.Lanes != 6 {
		t.Errorf("%d threads in %d, want 1007 in 6", p.Stats.Threads, p.Stats.Lanes)
	}
	run := load(t, p)
	run.run(rand.New(rand.NewPCG(1, 1)))
	sizes := make([][]uint64, len(run.lanes))
	for _, c := range run.calls {
		if c.new != 0 {
			sizes[c.thread] = append(sizes[c.thread], c.size)
		}
	}
	if len(sizes[0]) != 1 || sizes[0][0] != 2 {
		t.Errorf("the main thread allocates %d", sizes[0])
	}
	for lane := range 5 {
		if n := len(slices.DeleteFunc(slices.Clone(sizes[1+lane]), func(n uint64) bool { return n != 4 })); n != 1 {
			t.Errorf("thread %d has %d of the threads that live at once", 1+lane, n)
		}
	}
}

func TestThreadLimit(t *testing.T) {
	m := newMaker()
	for i := range 4098 {
		m.alloc(i, "malloc", uint64(1+i)<<12, 1)
	}
	for i := range 4098 {
		m.free(i, uint64(1+i)<<12)
	}
	b := replay.NewBuilder(replay.OrderDependencies)
	for _, r := range m.records {
		if err := b.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Program(); err == nil || err.Error() != "more than 4096 threads make calls at the same time" {
		t.Error(err)
	}
}

// Other contents of traces than pairs of calls.
func TestOddities(t *testing.T) {
	const tid = mainTID
	alloc := func(id, size uint64, function string, args ...trace.Arg) *trace.Record {
		return &trace.Record{Kind: trace.KindCall, PID: tid, TID: tid, Call: trace.Call{Op: trace.OpAlloc, Function: function, ID: id, Size: size, Args: args}}
	}
	op := func(op trace.Op, old, id, size uint64, function string) *trace.Record {
		return &trace.Record{Kind: trace.KindCall, PID: tid, TID: tid, Call: trace.Call{Op: op, Function: function, ID: id, OldID: old, Size: size}}
	}
	free := func(id uint64) *trace.Record { return op(trace.OpFree, 0, id, 0, "free") }
	other := func(r *trace.Record) *trace.Record { r.Call.Resource = 2; return r }
	thread := func(tid int32, r *trace.Record) *trace.Record { r.TID = tid; return r }
	arg := func(name, value string) trace.Arg { return trace.Arg{Name: name, Value: value} }
	for _, tt := range []struct {
		name  string
		in    []*trace.Record
		want  []string
		stats replay.Stats
	}{
		{
			"frees from before",
			[]*trace.Record{free(0x10), alloc(0x10, 5, "malloc"), free(0x10), free(0x10)},
			[]string{"malloc 5", "free"},
			replay.Stats{Calls: 2, Unmatched: 2, PeakBytes: 5, PeakBlocks: 1, Slots: 1},
		},
		{
			"moves from before",
			[]*trace.Record{op(trace.OpMove, 0x10, 0x20, 7, "realloc"), op(trace.OpMove, 0, 0x30, 8, "realloc"), op(trace.OpMove, 0x20, 0x20, 9, "reallocarray")},
			[]string{"realloc 7", "realloc 8", "realloc 9"},
			replay.Stats{Calls: 3, Adopted: 1, PeakBytes: 17, PeakBlocks: 2, Slots: 2, LeftBlocks: 2, LeftBytes: 17},
		},
		{
			"addresses in use again",
			[]*trace.Record{alloc(0x10, 5, "malloc"), alloc(0x10, 6, "malloc"), alloc(0x20, 1, "malloc"), op(trace.OpMove, 0x20, 0x10, 2, "realloc")},
			[]string{"malloc 5", "free", "malloc 6", "malloc 1", "free", "realloc 2"},
			replay.Stats{Calls: 6, AddedFrees: 2, PeakBytes: 7, PeakBlocks: 2, Slots: 2, LeftBlocks: 1, LeftBytes: 2},
		},
		{
			"exec",
			[]*trace.Record{alloc(0x10, 5, "malloc"), alloc(0x20, 6, "malloc"), {Kind: trace.KindExec, PID: tid, TID: tid}, alloc(0x10, 1, "malloc"), free(0x20)},
			[]string{"malloc 5", "malloc 6", "free", "free", "malloc 1"},
			replay.Stats{Calls: 5, AddedFrees: 2, Unmatched: 1, PeakBytes: 11, PeakBlocks: 2, Slots: 2, LeftBlocks: 1, LeftBytes: 1},
		},
		{
			"other resources",
			[]*trace.Record{
				{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory"}},
				{Kind: trace.KindResource, Resource: trace.Resource{ID: 2, Type: "fd"}},
				other(alloc(0x3, 1, "open")), alloc(0x10, 1, "malloc"), other(free(0x3)),
			},
			[]string{"malloc 1"},
			replay.Stats{Calls: 1, Other: 2, PeakBytes: 1, PeakBlocks: 1, Slots: 1, LeftBlocks: 1, LeftBytes: 1},
		},
		{
			"no blocks",
			[]*trace.Record{alloc(0, 5, "malloc"), free(0), op(trace.OpNone, 0, 1, 1, "malloc"), alloc(0x10, 1<<48, "malloc"), alloc(0x10, 0, "malloc"), free(0x10)},
			[]string{"malloc 0", "free"},
			replay.Stats{Calls: 2, Other: 4, PeakBlocks: 1, Slots: 1},
		},
		{
			"functions",
			[]*trace.Record{
				alloc(0x10, 1, "calloc"), alloc(0x20, 2, "realloc"), alloc(0x30, 3, "operator new"), alloc(0x40, 4, ""), alloc(0x50, 1<<32-2, "malloc"),
				alloc(0x60, 1<<32-1, "malloc"), alloc(0x70, 1<<40, "calloc"), op(trace.OpFree, 0, 0x20, 0, "realloc"),
			},
			[]string{"calloc 1", "realloc 2", "malloc 3", "malloc 4", "malloc 4294967294", "malloc 4294967295", "calloc 1099511627776", "free"},
			replay.Stats{Calls: 8, PeakBytes: 10 + 1<<33 - 3 + 1<<40, PeakBlocks: 7, Slots: 7, LeftBlocks: 6, LeftBytes: 8 + 1<<33 - 3 + 1<<40},
		},
		{
			"alignments",
			[]*trace.Record{
				alloc(0x1000, 1, "memalign"), alloc(0x2020, 1, "memalign"), alloc(0x3008, 1, "posix_memalign"), alloc(0x4000, 1, "valloc"), alloc(0x5010, 1, "pvalloc"),
				alloc(0x6000, 1, "aligned_alloc", arg("size", "1"), arg("alignment", "256")), alloc(0x7000, 1, "memalign", arg("boundary", "0x30")),
				alloc(0x8000, 1<<33, "memalign", arg("align", "1")), alloc(0x9000, 1, "memalign", arg("alignment", "x")), alloc(0xa000, 1, "memalign", arg("alignment", "0")),
			},
			[]string{
				"memalign 1 by 64", "memalign 1 by 32", "posix_memalign 1 by 8", "memalign 1 by 4096", "memalign 1 by 4096",
				"aligned_alloc 1 by 256", "memalign 1 by 64", "memalign 8589934592 by 8", "memalign 1 by 64", "memalign 1 by 64",
			},
			replay.Stats{Calls: 10, PeakBytes: 9 + 1<<33, PeakBlocks: 10, Slots: 10, LeftBlocks: 10, LeftBytes: 9 + 1<<33},
		},
		{
			"a thread id used again",
			[]*trace.Record{
				alloc(0x10, 1, "malloc"), thread(9, alloc(0x20, 2, "malloc")),
				{Kind: trace.KindExit, PID: tid, TID: 9},
				thread(9, alloc(0x30, 3, "malloc")),
				{Kind: trace.KindExit, PID: tid, TID: tid},
				{Kind: trace.KindExit, TID: 77},
				free(0x30),
				{Kind: trace.KindLost, Lost: trace.Lost{Count: 5}},
			},
			[]string{"malloc 1", "1: malloc 2", "1: malloc 3", "free"},
			replay.Stats{Calls: 4, Threads: 3, Lanes: 2, PeakBytes: 6, PeakBlocks: 3, Slots: 3, LeftBlocks: 2, LeftBytes: 3, LostEvents: 5, Waits: 1},
		},
	} {
		p := program(t, replay.OrderTrace, tt.in)
		run := load(t, p)
		run.run(rand.New(rand.NewPCG(1, 1)))
		var got []string
		for _, c := range run.calls {
			text := c.function
			if c.thread != 0 {
				text = fmt.Sprintf("%d: %s", c.thread, text)
			}
			if c.new != 0 {
				text += fmt.Sprintf(" %d", c.size)
			}
			if c.align != 0 {
				text += fmt.Sprintf(" by %d", c.align)
			}
			got = append(got, text)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		want := tt.stats
		if want.Threads == 0 {
			want.Threads, want.Lanes = 1, 1
		}
		want.Waits, want.ProgramSize = p.Stats.Waits, p.Stats.ProgramSize
		if d := cmp.Diff(want, p.Stats); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// Of several processes, the first that makes a call is replayed.
func TestProcesses(t *testing.T) {
	alloc := func(pid int32, id uint64) *trace.Record {
		return &trace.Record{Kind: trace.KindCall, PID: pid, TID: pid, Call: trace.Call{Op: trace.OpAlloc, ID: id, Size: 1}}
	}
	begin := func(pid int32) *trace.Record { return &trace.Record{Kind: trace.KindProcess, PID: pid} }
	exec := func(pid int32) *trace.Record { return &trace.Record{Kind: trace.KindExec, PID: pid} }
	for _, tt := range []struct {
		name               string
		in                 []*trace.Record
		calls, other, left uint64
	}{
		{"one", []*trace.Record{begin(7), alloc(7, 0x10), begin(7), alloc(7, 0x20)}, 2, 0, 2},
		{"unnamed", []*trace.Record{alloc(0, 0x10), alloc(0, 0x20)}, 2, 0, 2},
		{"streams", []*trace.Record{begin(0), begin(0), alloc(0, 0x10), alloc(0, 0x20), begin(0), alloc(0, 0x10), exec(0)}, 2, 1, 2},
		{"children", []*trace.Record{begin(7), exec(9), alloc(7, 0x10), begin(8), alloc(8, 0x10), alloc(7, 0x20), exec(8), alloc(8, 0x30)}, 2, 2, 2},
		{"exec", []*trace.Record{begin(7), alloc(7, 0x10), exec(7), alloc(7, 0x20)}, 3, 0, 1},
	} {
		s := program(t, replay.OrderDependencies, tt.in).Stats
		if s.Calls != tt.calls || s.Processes != tt.other || s.LeftBlocks != tt.left {
			t.Errorf("%s: %+v", tt.name, s)
		}
	}
}

func TestNoCalls(t *testing.T) {
	b := replay.NewBuilder(replay.OrderDependencies)
	if err := b.WriteRecord(&trace.Record{Kind: trace.KindCall, TID: 1, Call: trace.Call{Op: trace.OpFree, ID: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Program(); !errors.Is(err, replay.ErrNoCalls) {
		t.Error(err)
	}
}

// Threads in mpatrol's files have no kernel IDs.
func TestOwnThreadIDs(t *testing.T) {
	m := newMaker()
	for i := range 3 {
		m.alloc(i, "malloc", uint64(1+i)<<12, 1)
	}
	for i := range 3 {
		m.free(i, uint64(1+i)<<12)
	}
	for _, r := range m.records {
		r.PID, r.TID, r.Call.Thread = 0, 0, 0x7f0000000000+uint64(r.TID)
	}
	if p := program(t, replay.OrderDependencies, m.records); p.Stats.Threads != 3 || p.Stats.Lanes != 3 {
		t.Errorf("%d threads in %d", p.Stats.Threads, p.Stats.Lanes)
	}
}

// Formats may identify a thread by any number.
func TestThreadNumbers(t *testing.T) {
	for _, ids := range [][]uint64{{math.MaxUint64, 0, math.MaxUint64, 1, math.MaxUint64}, {0, math.MaxUint64, 1, 0, 1}} {
		var records []*trace.Record
		for i, id := range ids {
			r := &trace.Record{Kind: trace.KindCall}
			r.Call = trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: 16 * uint64(i+1), Size: 8, Thread: id}
			records = append(records, r)
		}
		p := program(t, replay.OrderDependencies, records)
		if p.Stats.Threads != 3 || p.Stats.Calls != 5 {
			t.Errorf("%d: %+v", ids, p.Stats)
		}
	}
}

// Adding a call allocates no memory of its own; all allocations are for words.
func TestBuilderAllocations(t *testing.T) {
	m := random(1, 2, 20_000, 100)
	b := replay.NewBuilder(replay.OrderDependencies)
	write := func() {
		for _, r := range m.records {
			if err := b.WriteRecord(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := testing.AllocsPerRun(5, write); n > float64(len(m.records))/500 {
		t.Errorf("%v allocations for %d calls", n, len(m.records))
	}
}

func BenchmarkBuilder(b *testing.B) {
	m := random(1, 2, 100_000, 1000)
	b.ReportAllocs()
	for b.Loop() {
		program(b, replay.OrderDependencies, m.records)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(m.records)), "ns/call")
}

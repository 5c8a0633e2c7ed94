package leak

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

func call(seq uint64, op trace.Op, resource uint32, id, size uint64) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, Call: trace.Call{
		Seq: seq, Op: op, Function: "f", Resource: resource, ID: id, Size: size,
	}}
}

func alloc(seq uint64, resource uint32, id, size uint64) *trace.Record {
	return call(seq, trace.OpAlloc, resource, id, size)
}

func free(seq uint64, resource uint32, id uint64) *trace.Record {
	return call(seq, trace.OpFree, resource, id, 0)
}

func move(seq uint64, old, id, size uint64) *trace.Record {
	r := call(seq, trace.OpMove, 1, id, size)
	r.Call.OldID = old
	return r
}

func resource(id uint32, typ string, refs bool) *trace.Record {
	return &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: id, Type: typ, RefCount: refs}}
}

func of(pid int32, r *trace.Record) *trace.Record {
	r.PID = pid
	return r
}

// seqs returns the Seq of the kept calls.
func seqs(f *Finder) []uint64 {
	var (
		rec trace.Record
		out []uint64
	)
	l := f.Leaks()
	for i := range l.Len() {
		l.Record(i, &rec)
		out = append(out, rec.Call.Seq)
	}
	return out
}

func TestRules(t *testing.T) {
	for _, tt := range []struct {
		name      string
		records   []*trace.Record
		want      []uint64
		unmatched uint64
	}{
		{"freed and not", []*trace.Record{alloc(1, 1, 16, 1), alloc(2, 1, 32, 1), free(3, 1, 16)}, []uint64{2}, 0},
		{"same id, other resource", []*trace.Record{alloc(1, 1, 16, 1), free(2, 2, 16)}, []uint64{1}, 1},
		{"older allocation of a live block", []*trace.Record{alloc(1, 1, 16, 1), alloc(2, 1, 16, 1), free(3, 1, 16)}, []uint64{1}, 0},
		{"both are leaks", []*trace.Record{alloc(1, 1, 16, 1), alloc(2, 1, 16, 1)}, []uint64{1, 2}, 0},
		{"second free", []*trace.Record{alloc(1, 1, 16, 1), free(2, 1, 16), free(3, 1, 16)}, nil, 1},
		{"free before", []*trace.Record{free(1, 1, 16), alloc(2, 1, 16, 1)}, []uint64{2}, 1},
		{"free of address 0", []*trace.Record{free(1, 0, 0), resource(1, "memory", false), free(2, 1, 0)}, nil, 0},
		{"close of descriptor 0", []*trace.Record{resource(1, "fd", false), free(1, 1, 0)}, nil, 1},
		{"reference counts", []*trace.Record{
			resource(3, "segment", true), alloc(1, 3, 7, 1), alloc(2, 3, 7, 1), free(3, 3, 7), alloc(4, 3, 8, 1), free(5, 3, 8), alloc(6, 3, 8, 1),
		}, []uint64{1, 6}, 0},
		{"last reference", []*trace.Record{
			resource(300, "segment", true), alloc(1, 300, 7, 1), alloc(2, 300, 7, 1), free(3, 300, 7), free(4, 300, 7), free(5, 300, 7),
		}, nil, 1},
		{"declared anew without counting", []*trace.Record{
			resource(300, "segment", true), resource(300, "segment", false), resource(3, "a", true), resource(3, "a", false),
			alloc(1, 300, 7, 1), alloc(2, 300, 7, 1), free(3, 300, 7), alloc(4, 3, 7, 1), alloc(5, 3, 7, 1),
		}, []uint64{1, 4, 5}, 0},
		{"undefined calls stay", []*trace.Record{call(1, trace.OpNone, 1, 16, 1), alloc(2, 1, 16, 1), free(3, 1, 16)}, []uint64{1}, 0},
		{"moves", []*trace.Record{alloc(1, 1, 16, 1), move(2, 16, 32, 2), move(3, 32, 32, 3)}, []uint64{3}, 0},
		{"move from nothing", []*trace.Record{move(1, 0, 16, 1), move(2, 48, 64, 1)}, []uint64{1, 2}, 1},
		{"exec", []*trace.Record{alloc(1, 1, 16, 1), {Kind: trace.KindExec}, alloc(2, 1, 32, 1), free(3, 1, 16)}, []uint64{2}, 1},
		{"exec of one process", []*trace.Record{
			of(1, alloc(1, 1, 16, 1)), of(2, alloc(2, 1, 16, 1)), of(1, &trace.Record{Kind: trace.KindExec}), of(1, alloc(3, 1, 32, 1)),
		}, []uint64{2, 3}, 0},
		{"exec of a process that calls do not name", []*trace.Record{alloc(1, 1, 16, 1), of(1, &trace.Record{Kind: trace.KindExec})}, nil, 0},
		{"exec of an unknown process", []*trace.Record{of(1, alloc(1, 1, 16, 1)), of(2, alloc(2, 1, 16, 1)), {Kind: trace.KindExec}}, nil, 0},
		{"two processes", []*trace.Record{
			of(1, alloc(1, 1, 16, 1)), of(2, alloc(2, 1, 16, 1)), of(1, free(3, 1, 16)), of(2, alloc(4, 1, 32, 1)), of(1, alloc(5, 1, 48, 1)), of(2, free(6, 1, 48)),
		}, []uint64{2, 4, 5}, 1},
		{"number used again", []*trace.Record{
			alloc(1, 1, 16, 1), alloc(2, 1, 32, 1), free(3, 1, 16), alloc(4, 1, 48, 1), free(5, 1, 32), alloc(6, 1, 16, 1),
		}, []uint64{4, 6}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, b := New(), live.NewBlocks()
			for _, r := range tt.records {
				f.Add(r)
				b.Add(r)
			}
			if n, _ := b.Live(); n != f.Live() || b.Unmatched() != tt.unmatched {
				t.Errorf("blocks alone: %d live, %d unmatched; want %d, %d", n, b.Unmatched(), f.Live(), tt.unmatched)
			}
			if d := cmp.Diff(tt.want, seqs(f)); d != "" {
				t.Errorf("kept calls (-want +got):\n%s", d)
			}
			if f.Unmatched() != tt.unmatched {
				t.Errorf("%d unmatched frees, want %d", f.Unmatched(), tt.unmatched)
			}
		})
	}
}

// full returns a call that uses every field.
func full(seq uint64) *trace.Record {
	return &trace.Record{
		Kind: trace.KindCall, Time: int64(seq) * 7, PID: 1, TID: 2, CPU: 3,
		Call: trace.Call{
			Seq: seq, Op: trace.OpAlloc, Function: fmt.Sprint("f", seq%3), Resource: 4, ID: 0x7f00 + seq, Size: seq << 33, Context: 5,
			Index: seq << 1, Thread: seq << 40, Caller: trace.Caller{Function: "g", File: "g.c", Line: seq},
			Stack: trace.Stack{
				Frames: []uint64{seq, 2, 3}, Names: []string{fmt.Sprint("n", seq%5), "", "c"},
				End: trace.StackFailed, FramePointer: seq%2 == 0, Reason: "no rule",
			},
			Args: []trace.Arg{{Name: "path", Value: fmt.Sprint("/", seq)}},
		},
	}
}

func TestRecordsAreWhole(t *testing.T) {
	f := New()
	variants := []func(*trace.Record){
		func(*trace.Record) {},
		func(r *trace.Record) { r.Call.Stack.Names = nil },
		func(r *trace.Record) { r.Call.Stack.Reason = "" },
		func(r *trace.Record) { r.Call.Stack = trace.Stack{} },
		func(r *trace.Record) { r.Call.Stack = trace.Stack{End: trace.StackUnknown} },
		func(r *trace.Record) { r.Call.Stack = trace.Stack{FramePointer: true} },
		func(r *trace.Record) { r.Call.Args = nil },
		func(r *trace.Record) { r.Call.Caller, r.Call.Index = trace.Caller{}, 0 },
		func(r *trace.Record) { r.Call.Caller.Function, r.Call.Stack.Names = "", nil },
		func(r *trace.Record) { r.Call.Stack = trace.Stack{}; r.Call.Caller.Line = 0 },
		func(r *trace.Record) { r.Call.Stack.Frames = r.Call.Stack.Frames[:1]; r.Call.Stack.Names = nil },
		func(r *trace.Record) { r.Call.Op = trace.OpNone },
	}
	var want []*trace.Record
	for i := range 5000 {
		r := full(uint64(i + 1))
		variants[i%len(variants)](r)
		want = append(want, r.Clone())
		f.Add(r)
		// The caller may change a record after Add.
		r.Call.Stack.Frames = append(r.Call.Stack.Frames[:0], 9, 9, 9)
		for j := range r.Call.Args {
			r.Call.Args[j] = trace.Arg{}
		}
	}
	l := f.Leaks()
	if l.Len() != len(want) {
		t.Fatalf("%d calls kept, want %d", l.Len(), len(want))
	}
	for i := range want {
		var got trace.Record
		l.Record(i, &got)
		if d := cmp.Diff(want[i], &got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("call %d (-want +got):\n%s", i, d)
		}
		if l.Ordinal(i) != uint64(i+1) {
			t.Fatalf("call %d has ordinal %d", i, l.Ordinal(i))
		}
	}
}

// model is the definition of a leak in its simplest form.
type model struct {
	calls []*trace.Record
	live  map[[2]uint64]*modelBlock
	refs  map[uint32]bool
}

type modelBlock struct {
	call *trace.Record
	refs int
}

func (m *model) add(r *trace.Record) {
	c := &r.Call
	key := [2]uint64{uint64(c.Resource), c.ID}
	b := m.live[key]
	switch {
	case c.Op == trace.OpAlloc && b != nil && m.refs[c.Resource]:
		b.refs++
	case c.Op == trace.OpAlloc:
		m.live[key] = &modelBlock{r, 1}
		m.calls = append(m.calls, r)
	case c.Op == trace.OpFree && b != nil:
		if b.refs--; b.refs == 0 || !m.refs[c.Resource] {
			delete(m.live, key)
			for i, k := range m.calls {
				if k == b.call {
					m.calls = append(m.calls[:i:i], m.calls[i+1:]...)
					break
				}
			}
		}
	case c.Op == trace.OpNone:
		m.calls = append(m.calls, r)
	}
}

func fuzzCalls(t *testing.T, ops []byte) {
	f := New()
	m := model{live: map[[2]uint64]*modelBlock{}, refs: map[uint32]bool{2: true}}
	f.Add(resource(1, "memory", false))
	f.Add(resource(2, "segment", true))
	for i := 0; i+2 <= len(ops); i += 2 {
		r := full(uint64(i + 1))
		c := &r.Call
		c.Op = [...]trace.Op{trace.OpAlloc, trace.OpAlloc, trace.OpFree, trace.OpFree, trace.OpNone}[ops[i]%5]
		c.Resource, c.ID = uint32(ops[i]>>6), uint64(ops[i+1]%16)
		c.Stack.Frames = []uint64{uint64(ops[i+1] >> 4), uint64(ops[i])}
		c.Stack.Names = nil
		f.Add(r)
		m.add(r)
	}
	l := f.Leaks()
	if l.Len() != len(m.calls) {
		t.Fatalf("%d calls kept, want %d", l.Len(), len(m.calls))
	}
	for i, want := range m.calls {
		var got trace.Record
		l.Record(i, &got)
		if d := cmp.Diff(want, &got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("call %d (-want +got):\n%s", i, d)
		}
	}
	if blocks := f.Live(); blocks != len(m.live) {
		t.Fatalf("%d live blocks, want %d", blocks, len(m.live))
	}
}

func FuzzFinder(f *testing.F) {
	f.Add([]byte{0, 1, 2, 1})
	f.Add([]byte{128, 1, 128, 1, 130, 1, 4, 4, 0, 1, 0, 1, 2, 1})
	f.Fuzz(fuzzCalls)
}

func TestRandomCalls(t *testing.T) {
	x := uint64(1)
	for range 10 {
		ops := make([]byte, 2000)
		for i := range ops {
			x = x*6364136223846793005 + 1442695040888963407
			ops[i] = byte(x >> 40)
		}
		fuzzCalls(t, ops)
	}
}

// TestMemoryIsBounded checks that calls that come and go, each with its own
// stack and name, do not accumulate.
func TestMemoryIsBounded(t *testing.T) {
	f := New()
	keep := full(1)
	f.Add(keep)
	for i := uint64(2); i < 60_000; i++ {
		r := alloc(i, 1, 16*i, i)
		r.Call.Function = fmt.Sprint("function", i)
		r.Call.Stack = trace.Stack{Frames: []uint64{i, i, i, i, i, i, i, i}, End: trace.StackComplete}
		f.Add(of(keep.PID, r))
		f.Add(of(keep.PID, free(i, 1, 16*i)))
	}
	s := f.calls.Of(keep.PID)
	if n := s.words.places.Words(); n > minWords+100 {
		t.Errorf("%d words of places", n)
	}
	if n := s.words.names.Len(); n > minNames+100 {
		t.Errorf("%d names", n)
	}
	if s.kept.Len() > 2 {
		t.Errorf("%d numbers for at most 2 calls", s.kept.Len())
	}
	if unsafe.Sizeof(kept{}) > 64 {
		t.Errorf("a kept call has %d bytes", unsafe.Sizeof(kept{}))
	}
	var got trace.Record
	f.Leaks().Record(0, &got)
	if d := cmp.Diff(keep, &got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("the call that stayed (-want +got):\n%s", d)
	}
}

// heap returns the memory that is in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestManyProcesses checks that a process with one call takes no room for
// thousands, and that one with thousands keeps them all.
func TestManyProcesses(t *testing.T) {
	f := New()
	const calls = 8195
	before := heap()
	for seq := uint64(1); seq <= calls; seq++ {
		f.Add(of(1, alloc(seq, 1, 16*seq, seq)))
		f.Add(of(int32(1+seq), alloc(seq, 1, 16, seq)))
	}
	// Room for thousands of calls would be 256 KiB.
	if used, limit := heap()-before, uint64(calls*16<<10); used > limit {
		t.Errorf("%d bytes of memory, more than %d", used, limit)
	}
	var bytes, want uint64
	leaks := f.Leaks()
	for i := range leaks.Len() {
		var r trace.Record
		leaks.Record(i, &r)
		bytes += r.Call.Size
	}
	for seq := uint64(1); seq <= calls; seq++ {
		want += 2 * seq
	}
	if leaks.Len() != 2*calls || bytes != want {
		t.Errorf("%d leaks, %d bytes; want %d, %d", leaks.Len(), bytes, 2*calls, want)
	}
}

func TestSums(t *testing.T) {
	f := New()
	for seq, c := range []struct {
		resource uint32
		size     uint64
	}{{1, 10}, {1, 20}, {2, 5}, {3, 7}, {4, 1}, {4, 2}, {8, 1 << 40}, {9, 99}} {
		f.Add(alloc(uint64(seq+1), c.resource, uint64(seq), c.size))
	}
	f.Add(call(99, trace.OpNone, 1, 1, 1))
	var listed []trace.Resource
	for _, id := range []uint32{1, 2, 3, 4, 5, 8, 32} {
		listed = append(listed, trace.Resource{ID: id, Type: fmt.Sprint("r", id)})
	}
	type sum struct {
		ID            uint32
		Blocks, Bytes uint64
	}
	flat := func(sums []Sum) (out []sum) {
		for _, s := range sums {
			if s.Resource.Type != fmt.Sprint("r", s.Resource.ID) {
				t.Errorf("resource %+v", s.Resource)
			}
			out = append(out, sum{s.Resource.ID, s.Blocks, s.Bytes})
		}
		return out
	}
	want := []sum{{1, 2, 30}, {2, 1, 5}, {3, 1, 7}, {4, 2, 3}, {5, 0, 0}, {8, 1, 1 << 40}, {32, 0, 0}}
	if d := cmp.Diff(want, flat(f.Sums(listed))); d != "" {
		t.Errorf("sums (-want +got):\n%s", d)
	}
	// Resource 9 is unknown and so counts for 1; 3 and 5 repeat the sum of 1, 4
	// that of 3, 8 that of 4.
	want = []sum{{1, 3, 129}, {2, 1, 5}, {3, 3, 129}, {4, 1, 7}, {5, 3, 129}, {8, 2, 3}, {32, 0, 0}}
	if d := cmp.Diff(want, flat(f.LegacySums(listed))); d != "" {
		t.Errorf("legacy sums (-want +got):\n%s", d)
	}
	// A single resource is number 1, and so are unknown ones.
	got := f.LegacySums([]trace.Resource{{ID: 4, Type: "r4"}})
	if got[0].Blocks != 8 {
		t.Errorf("legacy sum of a single resource: %+v", got[0])
	}
}

// BenchmarkAdd allocates and frees blocks from 256 stacks of 8 to 10 frames; 1
// in 50 stays.
func BenchmarkAdd(b *testing.B) {
	stacks := make([][]uint64, 256)
	for i := range stacks {
		for j := range 8 + i%3 {
			stacks[i] = append(stacks[i], 0x55c9757eb000+uint64(i*131+j*17))
		}
	}
	f := New()
	a, fr := alloc(1, 1, 0, 100), free(1, 1, 0)
	a.Call.Function, fr.Call.Function = "malloc", "free"
	a.Call.Stack.End = trace.StackComplete
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		i++
		a.Call.ID = 0x55c900000000 + i*48
		a.Call.Stack.Frames = stacks[i*7919%256]
		f.Add(a)
		if i%50 != 0 {
			fr.Call.ID = a.Call.ID
			f.Add(fr)
		}
	}
}

package profile

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// alloc returns an allocation with a stack of the given functions, the
// innermost first. Each function has one address, and "f+2" another one.
func alloc(id, size uint64, stack ...string) *trace.Record {
	r := &trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, ID: id, Size: size}}
	for _, f := range stack {
		name, offset, _ := cutOffset(f)
		addr := uint64(offset)
		for _, c := range name {
			addr = addr<<8 | uint64(c)
		}
		r.Call.Stack.Frames = append(r.Call.Stack.Frames, addr)
		r.Call.Stack.Names = append(r.Call.Stack.Names, name+"()")
	}
	return r
}

func cutOffset(f string) (name string, offset int, err error) {
	for i, c := range f {
		if c == '+' {
			_, err = fmt.Sscanf(f[i:], "+%d", &offset)
			return f[:i], offset, err
		}
	}
	return f, 0, nil
}

func free(id uint64) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpFree, ID: id}}
}

func move(old, id, size uint64, stack ...string) *trace.Record {
	r := alloc(id, size, stack...)
	r.Call.Op, r.Call.OldID = trace.OpMove, old
	return r
}

func exec() *trace.Record { return &trace.Record{Kind: trace.KindExec} }

func of(pid int32, r *trace.Record) *trace.Record {
	r.PID = pid
	return r
}

func profileOf(records ...*trace.Record) *Profile {
	p := New(Options{Bounds: DefaultBounds, Bins: 1024})
	for _, r := range records {
		p.Add(r)
	}
	return p
}

// text formats rows as "function/caller: bytes in count blocks, unfreed bytes
// in count".
func text(rows []*Row) []string {
	var out []string
	for _, r := range rows {
		key := ""
		for i := range r.Frames {
			if i > 0 {
				key += "/"
			}
			key += r.Frames[i].Label()
		}
		out = append(out, fmt.Sprintf("%s: %s", key, usage(&r.Usage)))
	}
	return out
}

func usage(u *Usage) string {
	n, bytes := u.Allocated.Total()
	m, left := u.Unfreed.Total()
	return fmt.Sprintf("%d in %d, unfreed %d in %d", bytes, n, left, m)
}

func TestUnfreed(t *testing.T) {
	segment := &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 3, Type: "segment", RefCount: true}}
	counted := func(r *trace.Record) *trace.Record {
		r.Call.Resource = 3
		return r
	}
	for _, tt := range []struct {
		name    string
		records []*trace.Record
		want    string
	}{
		{"nothing", nil, "0 in 0, unfreed 0 in 0"},
		{"freed and not", []*trace.Record{alloc(1, 10), alloc(2, 20), free(1)}, "30 in 2, unfreed 20 in 1"},
		{"address used again", []*trace.Record{alloc(1, 10), free(1), alloc(1, 20)}, "30 in 2, unfreed 20 in 1"},
		{"move", []*trace.Record{alloc(1, 10), move(1, 2, 20), move(2, 2, 5)}, "35 in 3, unfreed 5 in 1"},
		{"move from nothing and of the unknown", []*trace.Record{move(0, 2, 20), move(7, 8, 5)}, "25 in 2, unfreed 25 in 2"},
		{"unknown free", []*trace.Record{free(1), alloc(1, 10)}, "10 in 1, unfreed 10 in 1"},
		{"live twice", []*trace.Record{alloc(1, 10), alloc(1, 20), free(1), free(1)}, "30 in 2, unfreed 10 in 1"},
		{"exec", []*trace.Record{alloc(1, 10), alloc(1, 20), alloc(2, 5), exec(), alloc(2, 7)}, "42 in 4, unfreed 7 in 1"},
		{"exec twice", []*trace.Record{alloc(1, 10), alloc(1, 20), exec(), exec(), free(1)}, "30 in 2, unfreed 0 in 0"},
		{"processes", []*trace.Record{of(1, alloc(1, 10)), of(2, alloc(1, 20)), of(1, free(1)), of(2, alloc(2, 1)), of(2, exec()), of(1, alloc(9, 9))}, "40 in 4, unfreed 9 in 1"},
		{"references", []*trace.Record{segment, counted(alloc(1, 10)), counted(alloc(1, 10)), counted(free(1))}, "10 in 1, unfreed 10 in 1"},
		{"last reference", []*trace.Record{segment, counted(alloc(1, 10)), counted(alloc(1, 10)), counted(free(1)), counted(free(1))}, "10 in 1, unfreed 0 in 0"},
		{"no call", []*trace.Record{{Kind: trace.KindComment}, {Kind: trace.KindCall}}, "0 in 0, unfreed 0 in 0"},
	} {
		p := profileOf(tt.records...)
		total := p.Total()
		if got := usage(&total); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	if p := profileOf(free(1), free(2), free(0)); p.Unmatched() != 2 {
		t.Errorf("%d unmatched", p.Unmatched())
	}
}

func TestBins(t *testing.T) {
	p := New(Options{Bounds: DefaultBounds, Bins: 4})
	for i, size := range []uint64{0, 3, 3, 4, 1 << 40, 2} {
		p.Add(alloc(uint64(i), size))
	}
	for _, id := range []uint64{1, 3} {
		p.Add(free(id))
	}
	want := Bins{Allocated: Sizes{Count: []uint64{1, 0, 1, 2}}, Unfreed: Sizes{Count: []uint64{1, 0, 1, 1}}}
	want.Allocated.Above.Count, want.Allocated.Above.Bytes = 2, 1<<40+4
	want.Unfreed.Above.Count, want.Unfreed.Above.Bytes = 1, 1<<40
	if d := cmp.Diff(&want, p.Bins()); d != "" {
		t.Errorf("bins (-want +got):\n%s", d)
	}
}

func TestClasses(t *testing.T) {
	for size, want := range map[uint64]Class{
		0: Small, 1: Small, 32: Small, 33: Medium, 256: Medium, 257: Large, 2048: Large, 2049: ExtraLarge, 1 << 63: ExtraLarge,
	} {
		if got := DefaultBounds.Class(size); got != want {
			t.Errorf("%d has class %d, want %d", size, got, want)
		}
	}
	p := profileOf(alloc(1, 32, "f"), alloc(2, 33, "f"), alloc(3, 2048, "f"), alloc(4, 4096, "f"), free(3))
	want := Usage{
		Allocated: Sums{Count: [4]uint64{1, 1, 1, 1}, Bytes: [4]uint64{32, 33, 2048, 4096}},
		Unfreed:   Sums{Count: [4]uint64{1, 1, 0, 1}, Bytes: [4]uint64{32, 33, 0, 4096}},
	}
	if d := cmp.Diff(want, p.Direct(View{})[0].Usage); d != "" {
		t.Errorf("sums (-want +got):\n%s", d)
	}
}

func someCalls() []*trace.Record {
	return []*trace.Record{
		alloc(1, 100, "f", "main"), alloc(2, 10, "f+1", "main"), alloc(3, 1, "f", "g", "main"), alloc(4, 50, "g", "main"), alloc(5, 50, "h", "main"),
		free(5), free(2),
	}
}

func TestRows(t *testing.T) {
	for _, tt := range []struct {
		name string
		got  []*Row
		want []string
	}{
		{"direct", profileOf(someCalls()...).Direct(View{}), []string{
			"f: 111 in 3, unfreed 101 in 2", "g: 50 in 1, unfreed 50 in 1", "h: 50 in 1, unfreed 0 in 0",
		}},
		{"by addresses", profileOf(someCalls()...).Direct(View{Addresses: true}), []string{
			"f: 101 in 2, unfreed 101 in 2", "g: 50 in 1, unfreed 50 in 1", "h: 50 in 1, unfreed 0 in 0", "f: 10 in 1, unfreed 0 in 0",
		}},
		{"leaks", profileOf(someCalls()...).Leaks(1, View{}), []string{"f: 111 in 3, unfreed 101 in 2", "g: 50 in 1, unfreed 50 in 1"}},
		{"leaks of depth 2", profileOf(someCalls()...).Leaks(2, View{}), []string{
			"f/main: 110 in 2, unfreed 100 in 1", "g/main: 50 in 1, unfreed 50 in 1", "f/g: 1 in 1, unfreed 1 in 1",
		}},
		{"leaks of all frames", profileOf(someCalls()...).Leaks(0, View{}), []string{
			"f/main: 110 in 2, unfreed 100 in 1", "g/main: 50 in 1, unfreed 50 in 1", "f/g/main: 1 in 1, unfreed 1 in 1",
		}},
		{"by count", profileOf(alloc(1, 100, "f"), alloc(2, 1, "g"), alloc(3, 1, "g")).Leaks(1, View{ByCount: true}), []string{
			"g: 2 in 2, unfreed 2 in 2", "f: 100 in 1, unfreed 100 in 1",
		}},
		{"processes come together", profileOf(of(1, alloc(1, 5, "f")), of(2, alloc(1, 6, "f"))).Direct(View{}), []string{"f: 11 in 2, unfreed 11 in 2"}},
	} {
		if d := cmp.Diff(tt.want, text(tt.got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// Frames without names in the trace are named at the end.
func TestNamesAtTheEnd(t *testing.T) {
	p := New(Options{Bounds: DefaultBounds, Framer: sites.Framer{
		Name: func(pid int32, addr uint64) string { return fmt.Sprintf("p%d_%x()", pid, addr) },
	}})
	p.Add(of(7, &trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, ID: 1, Size: 3, Stack: trace.Stack{Frames: []uint64{0xab}}}}))
	if d := cmp.Diff([]string{"p7_ab: 3 in 1, unfreed 3 in 1"}, text(p.Direct(View{}))); d != "" {
		t.Error(d)
	}
}

func TestCallers(t *testing.T) {
	called := func(r *trace.Record, function string, line uint64) *trace.Record {
		r.Call.Caller = trace.Caller{Function: function, File: "a.c", Line: line}
		return r
	}
	p := profileOf(called(alloc(1, 5), "f", 1), called(alloc(2, 6), "f", 2), alloc(3, 7))
	if p.HasStacks() {
		t.Error("HasStacks is false")
	}
	if d := cmp.Diff([]string{"f: 11 in 2, unfreed 11 in 2", "??: 7 in 1, unfreed 7 in 1"}, text(p.Direct(View{}))); d != "" {
		t.Error(d)
	}
	if rows := p.Direct(View{Addresses: true}); len(rows) != 3 {
		t.Errorf("%d places", len(rows))
	}
	if p.Add(alloc(9, 1, "f")); !p.HasStacks() {
		t.Error("HasStacks is true")
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	p := profileOf(someCalls()...)
	a, f := alloc(99, 10, "f", "main"), free(99)
	add := func() { p.Add(a); p.Add(f) }
	add()
	if n := testing.AllocsPerRun(100, add); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkAdd adds pairs of an allocation with ten named frames and its free.
func BenchmarkAdd(b *testing.B) {
	var calls []*trace.Record
	for i := range 256 {
		stack := make([]string, 10)
		for j := range stack {
			stack[j] = fmt.Sprintf("function%d+%d", j, i)
		}
		calls = append(calls, alloc(uint64(i), 100, stack...))
	}
	p, f := profileOf(), free(0)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		a := calls[i&255]
		p.Add(a)
		f.Call.ID = a.Call.ID
		p.Add(f)
	}
	b.ReportMetric(float64(2*b.N)/b.Elapsed().Seconds()/1e6, "Mcalls/s")
}

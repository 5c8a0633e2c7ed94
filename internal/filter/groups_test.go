package filter_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rtrace-bpf/internal/filter"
	"rtrace-bpf/trace"
)

// shape is an expected group.
type shape struct {
	Seqs          []uint64
	Blocks, Bytes uint64
	Frames        []uint64
}

func shapes(t *testing.T, g *filter.Groups, order string) (all []shape) {
	t.Helper()
	for _, x := range g.Sorted(filter.Orders[order]) {
		s := shape{Blocks: x.Blocks, Bytes: x.Bytes}
		var rec trace.Record
		if err := g.Calls(x, &rec, func(r *trace.Record) error { s.Seqs = append(s.Seqs, r.Call.Seq); return nil }); err != nil {
			t.Fatal(err)
		}
		stack, _ := g.Stack(x)
		s.Frames = append(s.Frames, stack.Frames...)
		all = append(all, s)
	}
	return all
}

func sized(seq, size uint64, frames ...uint64) *trace.Record {
	r := call(seq, trace.OpAlloc, 16*seq)
	r.Call.Size, r.Call.Stack.Frames = size, frames
	return r
}

func TestGroups(t *testing.T) {
	build := func(narrow bool) *filter.Groups {
		g := filter.NewGroups()
		g.Narrow = narrow
		g.Add(sized(1, 10, 1, 2))
		g.Add(sized(2, 1<<31, 9))
		named := sized(3, 5, 1, 2)
		named.Call.Stack.Names = []string{"a", "b"}
		g.Add(named)
		g.Add(sized(4, 15, 2, 1))
		g.Add(sized(5, 0))
		return g
	}
	a := shape{[]uint64{1, 3}, 2, 15, []uint64{1, 2}}
	b := shape{[]uint64{2}, 1, 1 << 31, []uint64{9}}
	c := shape{[]uint64{4}, 1, 15, []uint64{2, 1}}
	d := shape{[]uint64{5}, 1, 0, nil}
	for _, tt := range []struct {
		name, order string
		narrow      bool
		want        []shape
	}{
		// 1, 2 and 2, 1 are in the same bucket, 3; 9 is in 9 ^ 1 = 8, nothing in 0.
		{"size", "size", false, []shape{b, a, c, d}},
		{"size-asc", "size-asc", false, []shape{d, a, c, b}},
		{"32 bits with sign", "size-asc", true, []shape{d, a, c, b}},
		{"count", "count", false, []shape{a, d, c, b}},
		{"count-asc", "count-asc", false, []shape{d, c, b, a}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, shapes(t, build(tt.narrow), tt.order), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
}

// Signed 32-bit sums are in order as long as their differences fit; from a
// difference of 2^31 on the larger sum counts as the smaller one.
func TestGroupsNarrow(t *testing.T) {
	for _, tt := range []struct {
		name string
		sums []uint64
		want []uint64 // in ascending order
	}{
		{"below zero", []uint64{15, 1<<32 - 5, 1<<32 - 7}, []uint64{1<<32 - 7, 1<<32 - 5, 15}},
		{"less than 2 GiB apart", []uint64{1 << 30, 1<<32 - 1<<30 + 1}, []uint64{1<<32 - 1<<30 + 1, 1 << 30}},
		{"more than 2 GiB apart", []uint64{3 << 29, 1<<32 - 3<<29}, []uint64{3 << 29, 1<<32 - 3<<29}},
	} {
		g := filter.NewGroups()
		g.Narrow = true
		for i, n := range tt.sums {
			g.Add(sized(uint64(i+1), n, uint64(i+1)))
		}
		var got []uint64
		for _, x := range g.Sorted(filter.Orders["size-asc"]) {
			got = append(got, x.Bytes)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// TestGroupsKeep checks that calls are returned as added, except for their
// stacks, and stay in order even if they fill several pieces.
func TestGroupsKeep(t *testing.T) {
	g := filter.NewGroups()
	const calls = 10_000
	for seq := uint64(1); seq <= calls; seq++ {
		r := sized(seq, 1, seq%3)
		if seq%1000 == 0 {
			r.Call.Args = []trace.Arg{{Name: "n", Value: "a value"}}
			r.Call.Function, r.Call.Context, r.Call.Resource, r.PID = "other", 4, 2, 7
			r.Call.ID, r.Call.Op, r.Time = ^uint64(0)-seq, trace.OpFree, -5
		}
		g.Add(r)
	}
	seen := uint64(0)
	for _, x := range g.Sorted(filter.Orders["count"]) {
		last := uint64(0)
		var rec trace.Record
		err := g.Calls(x, &rec, func(r *trace.Record) error {
			seen++
			want := sized(r.Call.Seq, 1, 0)
			if r.Call.Seq%1000 == 0 {
				want.Call.Args = []trace.Arg{{Name: "n", Value: "a value"}}
				want.Call.Function, want.Call.Context, want.Call.Resource, want.PID = "other", 4, 2, 7
				want.Call.ID, want.Call.Op, want.Time = ^uint64(0)-r.Call.Seq, trace.OpFree, -5
			}
			want.Call.Stack = trace.Stack{}
			if d := cmp.Diff(want, r); d != "" {
				t.Fatalf("call (-want +got):\n%s", d)
			}
			if r.Call.Seq <= last {
				t.Fatalf("call %d after %d", r.Call.Seq, last)
			}
			last = r.Call.Seq
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen != calls {
		t.Errorf("%d calls, want %d", seen, calls)
	}
	stop := errors.New("stop")
	var rec trace.Record
	if err := g.Calls(g.Sorted(filter.Orders["size"])[0], &rec, func(*trace.Record) error { return stop }); err != stop {
		t.Errorf("error %v", err)
	}
}

// TestGroupsStackless checks that calls without any stack are left out, as in
// the original.
func TestGroupsStackless(t *testing.T) {
	for _, drop := range []bool{false, true} {
		g := filter.NewGroups()
		g.Stackless = drop
		absent := sized(1, 1)
		absent.Call.Stack.End = trace.StackAbsent
		g.Add(absent)
		g.Add(sized(2, 1))
		want := []shape{{[]uint64{1, 2}, 2, 2, nil}}
		if drop {
			want = []shape{{[]uint64{2}, 1, 1, nil}}
		}
		if d := cmp.Diff(want, shapes(t, g, "size")); d != "" {
			t.Errorf("drop %v (-want +got):\n%s", drop, d)
		}
	}
}

// TestGroupsByTheThousand compares many groups, with stacks that begin and end
// alike, with a map.
func TestGroupsByTheThousand(t *testing.T) {
	g := filter.NewGroups()
	type key [3]uint64
	want := make(map[key][]uint64)
	x := uint64(1)
	for seq := uint64(1); seq <= 20_000; seq++ {
		x = x*6364136223846793005 + 1442695040888963407
		k := key{0x55c9757eb000, 0x55c9757eb000 + x>>51, 0x7fba76835305}
		want[k] = append(want[k], seq)
		r := sized(seq, 1, k[:]...)
		r.Call.Stack.FramePointer = x>>40&1 == 1 // makes another place but the same group
		g.Add(r)
	}
	if len(want) < 5000 {
		t.Fatalf("only %d different stacks", len(want))
	}
	got := make(map[key][]uint64)
	for _, s := range shapes(t, g, "size-asc") {
		got[key(s.Frames)] = append(got[key(s.Frames)], s.Seqs...)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

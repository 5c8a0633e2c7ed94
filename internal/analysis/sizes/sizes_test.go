package sizes_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/sizes"
	"rtrace-bpf/trace"
)

func counts(of ...uint64) *sizes.Counts {
	var c sizes.Counts
	for _, size := range of {
		c.Add(&trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, Size: size}})
	}
	return &c
}

func TestList(t *testing.T) {
	c := counts(7, 1, 7)
	c.Add(&trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpMove, Size: 7}})
	c.Add(&trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpFree, Size: 7}})
	c.Add(&trace.Record{Kind: trace.KindHeader, Call: trace.Call{Op: trace.OpAlloc, Size: 7}})
	if d := cmp.Diff([]sizes.Count{{1, 1}, {7, 3}}, c.List()); d != "" {
		t.Error(d)
	}
	if list := counts().List(); len(list) != 0 {
		t.Error(list)
	}
}

func TestDeltas(t *testing.T) {
	for _, c := range []struct {
		before, after *sizes.Counts
		want          []sizes.Delta
	}{
		{counts(), counts(), nil},
		{counts(1, 2), counts(2, 1), nil},
		{counts(), counts(5, 5), []sizes.Delta{{5, 0, 2}}},
		{counts(5, 5), counts(), []sizes.Delta{{5, 2, 0}}},
		{counts(100, 20, 3, 3), counts(100, 100, 20, 3, 9), []sizes.Delta{{3, 2, 1}, {9, 0, 1}, {100, 1, 2}}},
	} {
		if d := cmp.Diff(c.want, sizes.Deltas(c.before, c.after)); d != "" {
			t.Error(d)
		}
	}
}

func TestWasted(t *testing.T) {
	got := counts(0, 0, 15, 16, 16, 4096, 4097, 4097, 4097, 8192, 8192, 1<<33+1, 1<<33+1, 9000).Wasted(4096)
	want := []sizes.Waste{
		{Count: sizes.Count{Size: 0, Allocs: 2}, Bytes: 16},
		{Count: sizes.Count{Size: 4097, Allocs: 3}, Mapped: true, Bytes: 3 * 4095, Best: 4096},
		{Count: sizes.Count{Size: 8192, Allocs: 2}, Mapped: true, Best: 8192},
		{Count: sizes.Count{Size: 1<<33 + 1, Allocs: 2}, Mapped: true, Bytes: 2 * 4095, Best: 1 << 33},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

package topmost_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"rtrace-bpf/internal/analysis/topmost"
	"rtrace-bpf/trace"
)

func TestFinder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, limit := range []int{1, 3, 1000} {
		f := topmost.New(limit)
		var all []uint64
		r := trace.Record{Kind: trace.KindCall}
		for range 200 {
			r.Call = trace.Call{Op: trace.OpAlloc, ID: random.Uint64N(100), Stack: trace.Stack{Frames: []uint64{1}}}
			all = append(all, r.Call.ID)
			f.Add(&r)
			r.Call.Stack.Frames[0] = 2 // the reader's memory
			r.Call = trace.Call{Op: trace.OpFree, ID: 1000}
			f.Add(&r)
		}
		slices.Sort(all)
		var got []uint64
		for _, r := range f.List() {
			got = append(got, r.Call.ID)
			if r.Call.Stack.Frames[0] != 1 {
				t.Fatal("a record shares the reader's memory")
			}
		}
		if want := all[max(0, len(all)-limit):]; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

package usage_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/leak"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

func call(op trace.Op, tid int32, id, old, size uint64) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, PID: 1, TID: tid, Call: trace.Call{Op: op, ID: id, OldID: old, Size: size}}
}

func alloc(id, size uint64) *trace.Record { return call(trace.OpAlloc, 1, id, 0, size) }
func free(id uint64) *trace.Record        { return call(trace.OpFree, 1, id, 0, 0) }

// byTens puts blocks with sizes below 10 into group 0, below 20 into 1, and so
// on, and those of 1000 and more into none.
func byTens(r *trace.Record) int {
	if r.Call.Size >= 1000 {
		return usage.None
	}
	return int(r.Call.Size / 10)
}

// amount is a live.Amount in the tables of this test.
type amount live.Amount

type amounts = [5]amount

func of(u usage.Usage) amounts {
	return amounts{amount(u.Allocated), amount(u.Temporary), amount(u.Live), amount(u.Peak), amount(u.AtPeak)}
}

func paused() *trace.Record {
	return &trace.Record{Kind: trace.KindLost, Lost: trace.Lost{Count: 1, Reason: trace.LostPaused}}
}

// of2 makes a call one of resource 2; others are of 0.
func of2(r *trace.Record) *trace.Record {
	r.Call.Resource = 2
	return r
}

func TestCounter(t *testing.T) {
	exec := &trace.Record{Kind: trace.KindExec, PID: 1}
	counted := &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{RefCount: true}}
	none := amount{}
	for _, tt := range []struct {
		name    string
		records []*trace.Record
		want    []amounts // allocated, temporary, live, peak, at the peak of all
	}{
		{"nothing", nil, nil},
		{
			"live",
			[]*trace.Record{alloc(1, 5), alloc(2, 6)},
			[]amounts{{{2, 11}, none, {2, 11}, {2, 11}, {2, 11}}},
		},
		{
			"freed before the thread allocates again",
			[]*trace.Record{alloc(1, 5), free(1), alloc(2, 6), alloc(3, 7), free(2)},
			[]amounts{{{3, 18}, {1, 5}, {1, 7}, {2, 13}, {2, 13}}},
		},
		{
			"a free of another block between does not matter",
			[]*trace.Record{alloc(1, 5), alloc(2, 6), free(1), free(2)},
			[]amounts{{{2, 11}, {1, 6}, none, {2, 11}, {2, 11}}},
		},
		{
			"the address of a temporary block comes again in another thread",
			[]*trace.Record{alloc(1, 5), call(trace.OpFree, 2, 1, 0, 0), call(trace.OpAlloc, 2, 1, 0, 6), free(1)},
			[]amounts{{{2, 11}, none, none, {1, 6}, {1, 6}}},
		},
		{
			"other types of resources do not matter",
			[]*trace.Record{
				{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory"}},
				{Kind: trace.KindResource, Resource: trace.Resource{ID: 2, Type: "fd"}},
				alloc(1, 5), of2(alloc(1, 6)), free(1), of2(alloc(2, 6)), of2(free(1)),
			},
			[]amounts{{{3, 17}, {1, 5}, {1, 6}, {2, 12}, {2, 12}}},
		},
		{
			"a gap makes what is live unknown",
			[]*trace.Record{alloc(1, 5), alloc(2, 6), paused(), alloc(3, 7)},
			[]amounts{{{3, 18}, none, {1, 7}, {3, 18}, {3, 18}}},
		},
		{
			"unknown until it is freed or its address comes again",
			[]*trace.Record{alloc(1, 5), alloc(2, 6), alloc(3, 7), paused(), free(1), alloc(2, 8), paused(), paused(), free(2)},
			[]amounts{{{4, 26}, none, none, {3, 18}, {3, 18}}},
		},
		{
			"what other threads do does not matter",
			[]*trace.Record{alloc(1, 5), call(trace.OpAlloc, 2, 2, 0, 6), free(1), call(trace.OpFree, 2, 2, 0, 0)},
			[]amounts{{{2, 11}, {2, 11}, none, {2, 11}, {2, 11}}},
		},
		{
			"freed by another thread",
			[]*trace.Record{alloc(1, 5), call(trace.OpFree, 2, 1, 0, 0)},
			[]amounts{{{1, 5}, none, none, {1, 5}, {1, 5}}},
		},
		{
			"the peak of all is not that of a group",
			[]*trace.Record{alloc(1, 9), alloc(2, 9), free(1), alloc(3, 15), free(3), free(2), alloc(4, 8)},
			[]amounts{{{3, 26}, none, {1, 8}, {2, 18}, {1, 9}}, {{1, 15}, {1, 15}, none, {1, 15}, {1, 15}}},
		},
		{
			"a group after the peak",
			[]*trace.Record{alloc(1, 19), free(1), alloc(2, 5)},
			[]amounts{{{1, 5}, none, {1, 5}, {1, 5}, none}, {{1, 19}, {1, 19}, none, {1, 19}, {1, 19}}},
		},
		{
			"a move frees and allocates",
			[]*trace.Record{alloc(1, 5), alloc(2, 6), call(trace.OpMove, 1, 3, 1, 12), call(trace.OpMove, 1, 3, 3, 13)},
			[]amounts{{{2, 11}, none, {1, 6}, {2, 11}, {1, 6}}, {{2, 25}, {1, 12}, {1, 13}, {1, 13}, {1, 13}}},
		},
		{
			"a block of no group",
			[]*trace.Record{alloc(1, 1000), free(1), alloc(2, 1)},
			[]amounts{{{1, 1}, none, {1, 1}, {1, 1}, {1, 1}}},
		},
		{
			"an address that comes again",
			[]*trace.Record{alloc(1, 5), alloc(1, 6), alloc(1, 7), free(1), free(1)},
			[]amounts{{{3, 18}, {1, 7}, none, {1, 7}, {1, 7}}},
		},
		{
			"exec",
			[]*trace.Record{alloc(1, 5), alloc(1, 6), alloc(2, 12), exec, free(2), alloc(3, 1)},
			[]amounts{{{3, 12}, none, {1, 1}, {1, 6}, {1, 6}}, {{1, 12}, none, none, {1, 12}, {1, 12}}},
		},
		{
			"references",
			[]*trace.Record{counted, alloc(1, 5), alloc(1, 5), free(1), alloc(2, 6), free(1)},
			[]amounts{{{2, 11}, none, {1, 6}, {2, 11}, {2, 11}}},
		},
		{
			"no sizes",
			[]*trace.Record{alloc(1, 0), alloc(2, 0), free(1)},
			[]amounts{{{2, 0}, none, {1, 0}, {2, 0}, {2, 0}}},
		},
	} {
		c := usage.New(byTens)
		for _, r := range tt.records {
			c.Add(r)
		}
		var got []amounts
		for n := range c.Len() {
			got = append(got, of(c.Of(n)))
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// TestLikeLeak compares the live blocks with those that package leak finds, and
// the amount at the peak with a count of all blocks after every call.
func TestLikeLeak(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		c, finder := usage.New(byTens), leak.NewStill()
		var most live.Amount
		var peak [4]live.Amount
		for range 400 {
			id := 1 + rnd.Uint64N(12)
			r := alloc(id, rnd.Uint64N(40))
			switch rnd.IntN(8) {
			case 0, 1, 2:
				r = free(id)
			case 3:
				r = call(trace.OpMove, 1, 1+rnd.Uint64N(12), id, rnd.Uint64N(40))
			case 4:
				switch rnd.IntN(20) {
				case 0:
					r = &trace.Record{Kind: trace.KindExec, PID: 1}
				case 1, 2:
					r = paused()
				}
			}
			c.Add(r)
			finder.Add(r)
			known, unknown, total := sums(finder)
			if total.Bytes > most.Bytes || total.Bytes == most.Bytes && total.Blocks > most.Blocks {
				most = total
				for n := range known {
					peak[n] = live.Amount{Blocks: known[n].Blocks + unknown[n].Blocks, Bytes: known[n].Bytes + unknown[n].Bytes}
				}
			}
			for n := range known {
				if got := c.Of(n); got.Live != known[n] || got.Unknown != unknown[n] || got.AtPeak != peak[n] {
					t.Fatalf("group %d: live %v, unknown %v, at the peak %v, want %v, %v, %v", n, got.Live, got.Unknown, got.AtPeak, known[n], unknown[n], peak[n])
				}
			}
			got := c.Total()
			if all := (live.Amount{Blocks: got.Live.Blocks + got.Unknown.Blocks, Bytes: got.Live.Bytes + got.Unknown.Bytes}); got.Peak != most || all != total {
				t.Fatalf("total %+v, want %v at the peak, %v live or unknown", got, most, total)
			}
		}
		if c.Unmatched() != finder.Unmatched() {
			t.Errorf("%d unmatched, want %d", c.Unmatched(), finder.Unmatched())
		}
	}
}

func sums(f *leak.Finder) (known, unknown [4]live.Amount, total live.Amount) {
	leaks := f.Leaks()
	var r trace.Record
	for i := range leaks.Len() {
		leaks.Record(i, &r)
		of := &known[byTens(&r)]
		if leaks.Unknown(i) {
			of = &unknown[byTens(&r)]
		}
		for _, a := range [...]*live.Amount{of, &total} {
			a.Blocks++
			a.Bytes += r.Call.Size
		}
	}
	return known, unknown, total
}

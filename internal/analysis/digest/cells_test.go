package digest_test

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/cube"
	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// part identifies what is counted together in cells.
type part struct {
	stack    string
	thread   uint64
	class    uint8
	interval int64
}

// amounts are those of a cube.Part: made, ended, temporary, kept, unknown.
type amounts [5]live.Amount

// partsOf counts the blocks of a model in intervals of a width.
func partsOf(m *model, width int64) map[part]amounts {
	all := map[part]amounts{}
	for _, b := range m.blocks {
		count := func(time int64, is ...bool) {
			p := part{b.stack, uint64(b.tid), uint8((bits.Len64(b.size) + 1) / 2), time / width}
			a := all[p]
			for i, is := range is {
				if is {
					grow(&a[i], b.size)
				}
			}
			all[p] = a
		}
		count(b.made, true, false, b.temporary, b.ended < 0 && !b.unknown, b.ended < 0 && b.unknown)
		if b.ended >= 0 {
			count(b.ended, false, true)
		}
	}
	return all
}

// checkCells compares the cells with the blocks of the model, and the live amount at the end of each
// interval with the curve.
func checkCells(t *testing.T, name string, r *digest.Result, of *digest.Resource, m *model) {
	t.Helper()
	if !r.Intervals.Time || len(r.Intervals.Events) < 64 || len(r.Intervals.Events) > 128 {
		t.Errorf("%s: intervals %+v", name, r.Intervals)
	}
	got := map[part]amounts{}
	for i := range of.Cells {
		c := &of.Cells[i]
		for _, p := range c.Parts {
			key := part{text(r, of.Places[c.Place].Frames), of.Threads[c.Thread].ID, c.Class, int64(p.Interval)}
			a := got[key]
			for i, x := range []live.Amount{p.Made, p.Ended, p.Temporary, p.Kept, p.Unknown} {
				a[i].Add(x)
			}
			got[key] = a
		}
	}
	if d := cmp.Diff(partsOf(m, int64(r.Intervals.Width)), got); d != "" {
		t.Errorf("%s: cells (-want +got):\n%s", name, d)
	}
	if last := r.Intervals.Events[len(r.Intervals.Events)-1]; last != r.Calls {
		t.Errorf("%s: %d events, want %d", name, last, r.Calls)
	}
}

// A trace without times has intervals of events.
func TestCellsWithoutTimes(t *testing.T) {
	var records []*trace.Record
	for i := range uint64(300) {
		records = append(records, &trace.Record{Kind: trace.KindCall, PID: 1, TID: 1, Call: trace.Call{Op: trace.OpAlloc, ID: i + 1, Size: 8}})
	}
	r := run(digest.Options{}, records)
	k := r.Intervals
	if k.Time || k.Width != 4 || len(k.Events) != 75 || k.Events[0] != 4 || k.Events[74] != 300 {
		t.Fatalf("intervals %+v", k)
	}
	for i, p := range r.Resources[0].Cells[0].Parts {
		if want := (live.Amount{Blocks: 4, Bytes: 32}); p.Interval != uint32(i) || p.Made != want || p.Kept != want || p.Ended.Blocks > 0 {
			t.Errorf("part %d is %+v", i, p)
		}
	}
}

// Samples, which have no frees, are live until exec.
func TestCellsOfSamples(t *testing.T) {
	call := func(time int64, size uint64) *trace.Record {
		return &trace.Record{Kind: trace.KindCall, Time: time, PID: 1, TID: 1, Call: trace.Call{Op: trace.OpAlloc, Resource: 1, ID: 9, Size: size}}
	}
	records := []*trace.Record{{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory", Sampled: true}}}
	records = append(records, call(1, 1), call(2, 2), call(3, 3), call(200, 200), &trace.Record{Kind: trace.KindExec, Time: 200, PID: 1}, call(200, 201), call(251, 251))
	var got []string
	for _, c := range run(digest.Options{}, records).Resources[0].Cells {
		for _, p := range c.Parts {
			got = append(got, fmt.Sprint(p.Interval, p.Made, p.Ended, p.Kept))
		}
	}
	// Intervals have two nanoseconds.
	want := []string{
		"0 {2 3} {0 0} {0 0}", "1 {1 3} {0 0} {0 0}", "99 {0 0} {3 6} {0 0}",
		"99 {2 401} {1 200} {1 201}", "125 {1 251} {0 0} {1 251}",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// Classes of sizes join without gaps.
func TestClasses(t *testing.T) {
	for class := range uint8(33) {
		from, to := cube.Sizes(class)
		if cube.Class(from) != class || cube.Class(to) != class || class > 0 && cube.Class(from-1) != class-1 {
			t.Errorf("class %d is %d to %d", class, from, to)
		}
	}
}

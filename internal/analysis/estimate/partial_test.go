package estimate_test

import (
	"testing"

	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/trace"
)

// If the process ends before the second window, the calls of the first one are a lower bound:
// that window stands for itself alone, whatever was planned for the time after it.
func TestOneWindowIsALowerBound(t *testing.T) {
	const ms = 1_000_000
	window := func(time int64, x trace.Window) *trace.Record {
		return &trace.Record{Kind: trace.KindWindow, Time: time, Window: x}
	}
	var w estimate.Windows
	var calls estimate.Sum
	w.Observe(window(1000*ms, trace.Window{Weight: 1, Until: 1010 * ms, Stretch: 10 * ms}))
	for range 7 {
		calls.Add(&w, 1)
	}
	w.Observe(window(1010*ms, trace.Window{}))
	for _, end := range []struct {
		time    int64
		covered int64
		partial bool
	}{{1011 * ms, 11 * ms, false}, {2000 * ms, 1000 * ms, true}, {2000 * ms, 10 * ms, true}} {
		w.Observe(&trace.Record{Kind: trace.KindCost, Time: end.time, Cost: trace.Cost{Covered: end.covered}})
		if e := calls.Estimate(&w); e.Low != 7 || e.AtLeast != end.partial {
			t.Errorf("at %d, with %d ns covered: %+v", end.time, end.covered, e)
		}
	}
}

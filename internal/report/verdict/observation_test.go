package verdict_test

import (
	"slices"
	"testing"
	"time"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/report/verdict"
	"rtrace-bpf/trace"
)

// The figures come from the records of a trace.
func TestObservationOf(t *testing.T) {
	const s = int64(time.Second)
	e := aggregate.New()
	e.Add(&trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory"}})
	e.Add(&trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 2, Type: "fd"}})
	call := func(at int64, op trace.Op, id uint64) {
		e.Add(&trace.Record{Kind: trace.KindCall, Time: at, Call: trace.Call{Op: op, Resource: 1, ID: id, Size: 1}})
	}
	call(100*s, trace.OpAlloc, 1)
	if o := verdict.ObservationOf(e.State(), ""); o.Judged || o.Time != 0 {
		t.Errorf("without frees: %+v", o)
	}
	e.Add(&trace.Record{Kind: trace.KindLost, Time: 120 * s, Lost: trace.Lost{Reason: "paused", Count: 1, Since: 110 * s}})
	e.Add(&trace.Record{Kind: trace.KindLost, Time: 121 * s, Lost: trace.Lost{Reason: "ring full", Count: 24}})
	call(180*s, trace.OpFree, 1)
	want := verdict.Observation{Judged: true, Time: 80 * time.Second, Since: 20 * time.Second, Gaps: 1, Frees: 24}
	if o := verdict.ObservationOf(e.State(), ""); o != want {
		t.Errorf("%+v, want %+v", o, want)
	}
	if o := verdict.ObservationOf(e.State(), "fd"); o.Judged {
		t.Errorf("another resource: %+v", o)
	}
}

func TestObservation(t *testing.T) {
	const unknown = ": too short to tell whether a call site grows steadily"
	for _, tt := range []struct {
		observed verdict.Observation
		enough   bool
		none     string
		doubts   []string
	}{
		{verdict.Observation{Time: time.Minute}, false, "no verdict on growth: no frees were recorded", nil},
		{verdict.Observation{Judged: true, Time: 9500 * time.Millisecond}, false, "only 9.5 s observed" + unknown, nil},
		{verdict.Observation{Judged: true, Time: 10 * time.Second}, true, "no call site grows steadily (10 s observed)", nil},
		{verdict.Observation{Judged: true, Time: 3725 * time.Second}, true, "no call site grows steadily (1h2m5s observed)", nil},
		{
			verdict.Observation{Judged: true, Time: 60 * time.Second, Since: 30 * time.Second, Gaps: 1},
			true, "no call site grows steadily (1m0s observed)",
			[]string{"careful: the recording has a gap; verdicts rest on blocks allocated since 00:30"},
		},
		{
			verdict.Observation{Judged: true, Time: 60 * time.Second, Since: 31 * time.Second, Gaps: 1, Frees: 1},
			false, "only 29 s of 1m0s observed since the last gap in the recording" + unknown,
			[]string{"careful: the recording has a gap; verdicts rest on blocks allocated since 00:31", "careful: a lost call may be a free; a block whose free was lost looks live"},
		},
		{
			verdict.Observation{Judged: true, Time: 15 * time.Second, Since: 7 * time.Second, Gaps: 3},
			false, "only 8 s of 15 s observed since the last gap in the recording" + unknown,
			[]string{"careful: the recording has 3 gaps; verdicts rest on blocks allocated since 00:07"},
		},
		{
			verdict.Observation{Judged: true, Time: 60 * time.Second, Since: 61 * time.Second, Gaps: 1200},
			false, "nothing observed since the last gap in the recording" + unknown,
			[]string{"careful: the recording has 1,200 gaps; verdicts rest on blocks allocated since 01:01"},
		},
		{
			verdict.Observation{Judged: true, Time: 60 * time.Second, Frees: 24},
			true, "no call site grows steadily (1m0s observed)",
			[]string{"careful: 24 lost calls may be frees; a block whose free was lost looks live"},
		},
	} {
		o := tt.observed
		if o.Enough() != tt.enough || o.None() != tt.none || !slices.Equal(o.Doubts(), tt.doubts) {
			t.Errorf("%+v: %v, %q, %q; want %v, %q, %q", o, o.Enough(), o.None(), o.Doubts(), tt.enough, tt.none, tt.doubts)
		}
	}
}

package digest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

const (
	second  = int64(1e9)
	ofHours = 3600 * second
)

// The recording begins before the first call and ends after the last one; what is missing from it has
// its place, also across midnight.
func TestRecording(t *testing.T) {
	for _, tt := range []struct {
		name  string
		clock trace.Clock
		at    func(int64) int64 // seconds to a time of the trace
	}{
		{"monotonic", trace.ClockMonotonic, func(s int64) int64 { return 5*ofHours + s*second }},
		{"day", trace.ClockDay, func(s int64) int64 { return 5*ofHours + s*second }},
		{"midnight before the first call", trace.ClockDay, func(s int64) int64 { return (24*ofHours + (s-7)*second) % (24 * ofHours) }},
		{"midnight in a pause", trace.ClockDay, func(s int64) int64 { return (24*ofHours + (s-25)*second) % (24 * ofHours) }},
	} {
		call := func(s int64) *trace.Record {
			return &trace.Record{Kind: trace.KindCall, Time: tt.at(s), PID: 1, Call: trace.Call{Op: trace.OpAlloc, ID: uint64(s), Size: 1}}
		}
		lost := func(from, to int64, reason string, n uint64) *trace.Record {
			return &trace.Record{Kind: trace.KindLost, Time: tt.at(to), PID: 1, Lost: trace.Lost{Reason: reason, Count: n, Since: tt.at(from)}}
		}
		r := run(digest.Options{}, []*trace.Record{
			{Kind: trace.KindHeader, Time: tt.at(1), Header: trace.Header{Clock: tt.clock}},
			{Kind: trace.KindRSS, Time: tt.at(1), PID: 1, RSS: trace.RSS{Bytes: 100}},
			lost(2, 5, trace.LostPaused, 1),
			call(10), call(20), lost(22, 30, trace.LostPaused, 1), lost(30, 31, trace.LostNames, 9),
			{Kind: trace.KindHeapGrow, Time: tt.at(31), PID: 1, HeapGrow: trace.HeapGrow{Size: 40}},
			{Kind: trace.KindHeapGrow, Time: tt.at(32), PID: 1, HeapGrow: trace.HeapGrow{Size: 2, Internal: true}},
			{Kind: trace.KindHeapGrow, Time: tt.at(33), PID: 1, HeapGrow: trace.HeapGrow{Size: 20}},
			call(35), lost(40, 41, "ring full", 7), call(45),
			{Kind: trace.KindRSS, Time: tt.at(50), PID: 1, RSS: trace.RSS{Bytes: 300}},
			{Kind: trace.KindEnd, Time: tt.at(51), PID: 1},
		})
		want := digest.Recording{
			Begin: -9 * second, End: 41 * second,
			Spans:  []digest.Span{{Kind: digest.Paused, From: -8 * second, To: -5 * second, Count: 1}, {Kind: digest.Paused, From: 12 * second, To: 20 * second, Count: 1}, {Kind: digest.Lossy, From: 30 * second, To: 31 * second, Count: 7}},
			RSS:    []digest.Level{{Time: -9 * second, Bytes: 100}, {Time: 40 * second, Bytes: 300}},
			System: []digest.Level{{Time: 21 * second, Bytes: 40}, {Time: 23 * second, Bytes: 60}},
		}
		if d := cmp.Diff(want, r.Recording); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// Spans that are close together are one, and a long list of levels keeps its ends.
func TestManySpans(t *testing.T) {
	records := []*trace.Record{
		{Kind: trace.KindProcess, Time: 10 * second, PID: 1},
		{Kind: trace.KindCall, Time: 21 * second, Call: trace.Call{Op: trace.OpAlloc, ID: 1}},
		{Kind: trace.KindExit, Time: 90 * second, PID: 1, Exit: trace.Exit{Process: true}},
		{Kind: trace.KindCall, Time: 79 * second, Call: trace.Call{Op: trace.OpFree, ID: 1}},
	}
	for i := range int64(10_000) {
		at := 72*second + i*1000
		records = append(records, &trace.Record{Kind: trace.KindLost, Time: at, Lost: trace.Lost{Reason: "ring full", Count: 2}},
			&trace.Record{Kind: trace.KindHeapGrow, Time: at, HeapGrow: trace.HeapGrow{Size: 1}})
	}
	k := run(digest.Options{}, records).Recording
	want := []digest.Span{
		{Kind: digest.Lossy, From: 51 * second, To: 51*second + 9999*1000, Count: 20_000},
	}
	if d := cmp.Diff(want, k.Spans); d != "" {
		t.Errorf("spans (-want +got):\n%s", d)
	}
	if n := len(k.System); n < 500 || n > 1100 || k.System[0].Bytes != 1 || k.System[n-1].Bytes != 10_000 {
		t.Errorf("%d levels, from %+v to %+v", n, k.System[0], k.System[n-1])
	}
}

// Neighbouring frames in generated code without names are one frame, and only there.
func TestGenerated(t *testing.T) {
	for _, generated := range []func(int32) bool{nil, func(int32) bool { return true }} {
		r := run(digest.Options{
			Generated: generated,
			Framer:    sites.Framer{Name: func(_ int32, addr uint64) string { return map[uint64]string{1: "alloc", 9: "main"}[addr] }},
			Module:    func(_ int32, addr uint64) string { return map[uint64]string{2: "//anon", 7: "/bin/app"}[addr] },
		}, []*trace.Record{
			{Kind: trace.KindCall, PID: 1, Call: trace.Call{Op: trace.OpAlloc, ID: 1, Size: 1, Stack: trace.Stack{Frames: []uint64{1, 2, 3, 7, 4, 9}}}},
			{Kind: trace.KindCall, PID: 1, Call: trace.Call{Op: trace.OpAlloc, ID: 2, Size: 1, Stack: trace.Stack{Frames: []uint64{1, 5, 7, 6, 3, 9}}}},
		})
		if generated == nil {
			if n := len(r.Resources[0].Places); n != 2 {
				t.Errorf("%d stacks, want both", n)
			}
			continue
		}
		var names []string
		for _, n := range r.Resources[0].Places[0].Frames {
			names = append(names, r.Frames[n].Label())
		}
		want := []string{"alloc", digest.Generated, "0x0000000000000007 from /bin/app", digest.Generated, "main"}
		if d := cmp.Diff(want, names); d != "" || len(r.Resources[0].Places) != 1 {
			t.Errorf("%d stacks (-want +got):\n%s", len(r.Resources[0].Places), d)
		}
	}
}

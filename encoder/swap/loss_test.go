package swap_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	decoder "rtrace-bpf/decoder/swap"
	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/trace"
)

// A loss becomes a gap and a message with its reason, and is read as one loss. That
// holds also if the loss is longer than a gap can be, or before the first message.
func TestLosses(t *testing.T) {
	lost := func(n uint64, reason string) trace.Record {
		return trace.Record{Kind: trace.KindLost, Time: 9, PID: 7, Lost: trace.Lost{Count: n, Reason: reason}}
	}
	call := trace.Record{Kind: trace.KindCall, Time: 9, PID: 7, Call: trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: 16}}
	records := []trace.Record{
		lost(2, "late record"), call, lost(5, "ring full"), lost(1, "stack failed"), call,
		lost(3, "sequence gap"), lost(4, "nesting limit"), lost(6, "sequence gap"), lost(0, "paused"), call,
		{Kind: trace.KindComment, Time: 9, Comment: "lost 7: no gap is as long"},
		lost(1<<40, "ring full"), call,
	}
	data, w := write(t, swap.Options{}, records...)
	if s := w.Stats(); s.CutGaps != 2 {
		t.Errorf("%+v", s)
	}
	read := func(data []byte) (got []trace.Lost, comments []string, all []*trace.Record) {
		r, err := decoder.NewReader(bytes.NewReader(data), decoder.Options{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		if all, err = trace.Load(r); err != nil {
			t.Fatal(err)
		}
		var sum uint64
		for _, rec := range all {
			switch rec.Kind {
			case trace.KindLost:
				got = append(got, rec.Lost)
				sum += rec.Lost.Count
			case trace.KindComment:
				comments = append(comments, rec.Comment)
			}
		}
		if stats := r.Stats(); stats.Lost != sum || stats.Calls != 4 {
			t.Errorf("%+v, but %d lost in the records", stats, sum)
		}
		return got, comments, all
	}
	got, comments, all := read(data)
	want := []trace.Lost{
		{Count: 2, Reason: "late record"},
		{Count: 5, Reason: "ring full"},
		{Count: 1, Reason: "stack failed"},
		{Count: 3, Reason: "sequence gap"},
		{Count: 4, Reason: "nesting limit"},
		{Count: 6, Reason: "sequence gap"},
		{Reason: "paused"},
		{Count: 1 << 40, Reason: "ring full"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"lost 7: no gap is as long"}, comments); d != "" {
		t.Errorf("comments (-want +got):\n%s", d)
	}

	// Writing the records that were read makes the same losses again.
	var again []trace.Record
	for _, r := range all {
		again = append(again, *r)
	}
	data, _ = write(t, swap.Options{}, again...)
	if second, _, _ := read(data); cmp.Diff(got, second) != "" {
		t.Errorf("the second time: %v", second)
	}
}

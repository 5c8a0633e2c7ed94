package loss_test

import (
	"fmt"
	"testing"

	"rtrace-bpf/internal/analysis/loss"
	"rtrace-bpf/trace"
)

func lost(reason string, count uint64, since, now int64) *trace.Record {
	return &trace.Record{Kind: trace.KindLost, Time: now, Lost: trace.Lost{Count: count, Reason: reason, Since: since}}
}

func TestTable(t *testing.T) {
	var sums loss.Table
	sums.Add(lost("ring full", 3, 0, 10))
	sums.Add(lost("ring full", 4, 0, 20))
	sums.Add(lost("stack failed", 5, 0, 30))
	sums.Add(lost(trace.LostPaused, 1, 40, 70))
	sums.Add(lost(trace.LostPaused, 1, 0, 90))
	if got := sums.HiddenFrees(); got != 7 {
		t.Errorf("%d hidden frees, want 7", got)
	}
	if got := sums.Gaps(); got != 2 {
		t.Errorf("%d gaps, want 2", got)
	}
	if got := sums[trace.LostPaused].Missing; got != 30 {
		t.Errorf("%d ns missing, want 30", got)
	}
}

// TestManyReasons counts losses for too many reasons together.
func TestManyReasons(t *testing.T) {
	var sums loss.Table
	for i := range 1000 {
		sums.Add(lost(fmt.Sprint("reason ", i), 2, 0, 0))
	}
	if n := len(sums); n > 300 {
		t.Errorf("%d reasons are kept", n)
	}
	if got := sums.HiddenFrees(); got != 2000 {
		t.Errorf("%d hidden frees, want 2000", got)
	}
}

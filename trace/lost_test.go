package trace_test

import (
	"testing"

	"rtrace-bpf/trace"
)

func TestLost(t *testing.T) {
	for _, tt := range []struct {
		reason     string
		gap, frees bool
	}{
		{"paused", true, true},
		{"probes moved", true, true},
		{"ring full", false, true},
		{"record unfinished", false, true},
		{"nesting limit", false, true},
		{"a reason of another tool", false, true},
		{"sideband lost", false, false},
		{"stack failed", false, false},
		{"late record", false, false},
		{"probed late", false, false},
	} {
		l := trace.Lost{Count: 1, Reason: tt.reason}
		if l.Gap() != tt.gap || l.HidesFrees() != tt.frees {
			t.Errorf("%s: a gap %v, hides frees %v; want %v, %v", tt.reason, l.Gap(), l.HidesFrees(), tt.gap, tt.frees)
		}
	}
}

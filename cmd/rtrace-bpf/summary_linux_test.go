package main

import (
	"bytes"
	"testing"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer"
)

// counts makes numbers by end.
func counts(unknown, complete, truncated, failed uint64) [5]uint64 {
	return [5]uint64{
		trace.StackUnknown: unknown, trace.StackComplete: complete,
		trace.StackTruncated: truncated, trace.StackFailed: failed,
	}
}

// The line on stacks has each kind that there is, those by tables alone first.
func TestQuality(t *testing.T) {
	for name, test := range map[string]struct {
		stats tracer.Stats
		want  string
	}{
		"none":       {tracer.Stats{}, ""},
		"complete":   {tracer.Stats{Stacks: counts(0, 7, 0, 0)}, "7 complete"},
		"by pointer": {tracer.Stats{Stacks: counts(0, 7, 0, 0), FramePointer: counts(0, 7, 0, 0)}, "7 complete with frame-pointer steps"},
		"both": {
			tracer.Stats{Stacks: counts(0, 7, 0, 0), FramePointer: counts(0, 2, 0, 0)},
			"5 complete, 2 complete with frame-pointer steps",
		},
		"cut": {
			tracer.Stats{Stacks: counts(0, 1, 9, 0), FramePointer: counts(0, 0, 4, 0)},
			"1 complete, 9 cut at the depth limit",
		},
		"helper": {tracer.Stats{Stacks: counts(3, 0, 0, 0), FramePointer: counts(3, 0, 0, 0)}, "3 from the kernel's own walker"},
		"broken": {
			tracer.Stats{Stacks: counts(0, 0, 0, 6), Broken: map[string]uint64{"unmapped": 3, "lost": 1, "bad-frame": 2, "no-rule": 0}},
			"2 broken off (bad-frame), 1 broken off (lost), 3 broken off (unmapped)",
		},
		"all": {
			tracer.Stats{Stacks: counts(1, 5, 3, 4), FramePointer: counts(1, 1, 1, 1), Broken: map[string]uint64{"frame-pointer": 4}},
			"4 complete, 1 complete with frame-pointer steps, 3 cut at the depth limit, 1 from the kernel's own walker, 4 broken off (frame-pointer)",
		},
	} {
		if got := quality(&test.stats); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Stacks and their checking have a line each, if there were any.
func TestStackSummary(t *testing.T) {
	stats := tracer.Stats{Stacks: counts(0, 7, 1, 0), DistinctStacks: 3, Verified: 5, VerifyDiffers: 2}
	busy := stats
	busy.Work.Unchecked = 4
	for name, test := range map[string]struct {
		verify int
		stats  tracer.Stats
		want   string
	}{
		"none":      {1, tracer.Stats{Verified: 1}, ""},
		"unchecked": {0, stats, "  stacks: 8 (3 distinct), 7 complete, 1 cut at the depth limit\n"},
		"checked":   {10, stats, "  stacks: 8 (3 distinct), 7 complete, 1 cut at the depth limit\n  checked stacks: 5, 2 differ\n"},
		"busy":      {10, busy, "  stacks: 8 (3 distinct), 7 complete, 1 cut at the depth limit\n  checked stacks: 5, 2 differ; 4 were left out, since the ring was busy\n"},
	} {
		x := session{config: &config{}}
		x.config.verifyUnwind = test.verify
		var out bytes.Buffer
		if x.stackSummary(&out, &test.stats); out.String() != test.want {
			t.Errorf("%s: %q, want %q", name, out.String(), test.want)
		}
	}
}

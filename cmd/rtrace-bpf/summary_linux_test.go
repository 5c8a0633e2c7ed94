package main

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/recording"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/record"
)

// counts makes an array of numbers, indexed by how stacks ended.
func counts(unknown, complete, truncated, failed uint64) [5]uint64 {
	return [5]uint64{
		trace.StackUnknown: unknown, trace.StackComplete: complete,
		trace.StackTruncated: truncated, trace.StackFailed: failed,
	}
}

// The line on stacks has each kind that occurs, those from unwind tables alone first.
func TestQuality(t *testing.T) {
	for name, test := range map[string]struct {
		stats record.Stats
		want  string
	}{
		"none":       {record.Stats{}, ""},
		"complete":   {record.Stats{Stacks: counts(0, 7, 0, 0)}, "7 complete"},
		"by pointer": {record.Stats{Stacks: counts(0, 7, 0, 0), FramePointer: counts(0, 7, 0, 0)}, "7 complete with frame-pointer steps"},
		"both": {
			record.Stats{Stacks: counts(0, 7, 0, 0), FramePointer: counts(0, 2, 0, 0)},
			"5 complete, 2 complete with frame-pointer steps",
		},
		"cut": {
			record.Stats{Stacks: counts(0, 1, 9, 0), FramePointer: counts(0, 0, 4, 0)},
			"1 complete, 9 cut at the depth limit",
		},
		"helper": {record.Stats{Stacks: counts(3, 0, 0, 0), FramePointer: counts(3, 0, 0, 0)}, "3 from the kernel's own walker"},
		"broken": {
			record.Stats{Stacks: counts(0, 0, 0, 6), Broken: map[string]uint64{"unmapped": 3, "lost": 1, "bad-frame": 2, "no-rule": 0}},
			"2 broken off (bad-frame), 1 broken off (lost), 3 broken off (unmapped)",
		},
		"all": {
			record.Stats{Stacks: counts(1, 5, 3, 4), FramePointer: counts(1, 1, 1, 1), Broken: map[string]uint64{"frame-pointer": 4}},
			"4 complete, 1 complete with frame-pointer steps, 3 cut at the depth limit, 1 from the kernel's own walker, 4 broken off (frame-pointer)",
		},
	} {
		if got := quality(&test.stats); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// If there are stacks, there is a line about them, and if some were checked, another one.
func TestStackSummary(t *testing.T) {
	stats := record.Stats{Stacks: counts(0, 7, 1, 0), DistinctStacks: 3, Verified: 5, VerifyDiffers: 2}
	busy := stats
	busy.Work.Unchecked = 4
	for name, test := range map[string]struct {
		verify int
		stats  record.Stats
		want   string
	}{
		"none":      {1, record.Stats{Verified: 1}, ""},
		"unchecked": {0, stats, "  stacks: 8 (3 distinct), 7 complete, 1 cut at the depth limit\n"},
		"checked":   {10, stats, "  stacks: 8 (3 distinct), 7 complete, 1 cut at the depth limit\n  checked stacks: 5, 2 differ\n"},
		"busy":      {10, busy, "  stacks: 8 (3 distinct), 7 complete, 1 cut at the depth limit\n  checked stacks: 5, 2 differ; 4 were left out, because the ring was busy\n"},
	} {
		r := reporter{config: &config{stacks: stackFlags{verify: test.verify}}}
		var out bytes.Buffer
		if r.stackSummary(&out, &recording.Summary{Stats: test.stats}); out.String() != test.want {
			t.Errorf("%s: %q, want %q", name, out.String(), test.want)
		}
	}
}

// TestSitesOfTheSummary checks that stacks are cut, and that two stacks that begin alike
// are shown up to where they differ.
func TestSitesOfTheSummary(t *testing.T) {
	stack := func(n int, outer ...uint64) (frames []uint64) {
		for i := range n {
			frames = append(frames, uint64(i+1))
		}
		return append(frames, outer...)
	}
	for name, test := range map[string]struct {
		stacks [][]uint64
		want   []int // how many frames are shown
	}{
		"short":              {[][]uint64{stack(6)}, []int{6}},
		"cut":                {[][]uint64{stack(7)}, []int{6}},
		"unlike":             {[][]uint64{stack(8), stack(2, 99, 98, 97, 96, 95, 94, 93)}, []int{6, 6}},
		"alike for ten":      {[][]uint64{stack(10, 20, 30, 40), stack(10, 21, 30, 40), stack(3)}, []int{11, 11, 3}},
		"one within another": {[][]uint64{stack(8), stack(12)}, []int{8, 9}},
		"three, two by two":  {[][]uint64{stack(7, 20, 1, 1), stack(7, 21, 1, 1), stack(9, 22)}, []int{8, 8, 8}},
		"no stack and one":   {[][]uint64{nil, stack(7)}, []int{0, 6}},
	} {
		var sites []record.LiveSite
		for _, frames := range test.stacks {
			sites = append(sites, record.LiveSite{Frames: frames, Blocks: 1, Bytes: 1})
		}
		var got []int
		for i := range sites {
			got = append(got, shownFrames(sites, i))
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	var out bytes.Buffer
	printSites(&out, "live", []record.LiveSite{
		{Frames: stack(9), Blocks: 2, Bytes: 20}, {Frames: stack(7), Blocks: 1, Bytes: 5}, {Frames: stack(1), Blocks: 1, Bytes: 4}, {Blocks: 1, Bytes: 1},
	}, func(addr uint64) string { return fmt.Sprintf("f%d()", addr) })
	const want = `  most live bytes:
    20 B in 2 blocks from
      0x1 f1()
      0x2 f2()
      0x3 f3()
      0x4 f4()
      0x5 f5()
      0x6 f6()
      0x7 f7()
      0x8 f8()
      … 1 more frame
    5 B in 1 blocks from
      0x1 f1()
      0x2 f2()
      0x3 f3()
      0x4 f4()
      0x5 f5()
      0x6 f6()
      0x7 f7()
    4 B in 1 blocks from
      0x1 f1()
    1 B in 1 blocks from
      no stack was recorded
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

package main

import (
	"fmt"
	"io"

	"rtrace-bpf/internal/recording"
	"rtrace-bpf/internal/recording/status"
)

// residenceSummary prints how the resident memory grew, and how much of that is attributed.
func residenceSummary(w io.Writer, s *recording.Summary) {
	x := s.Residence
	sums := &x.Sums
	start := "when the process executed its program"
	if !x.Executed {
		start = "at the start"
	}
	fmt.Fprintf(w, "  RSS: %s %s, %s at the end\n", status.Bytes(x.Start), start, status.Bytes(x.End))
	fmt.Fprintf(w, "  growth: %s = %s attributed + %s unattributed", signed(x.End, x.Start), status.Bytes(sums.Attributed), status.Bytes(sums.Unknown))
	if gone := x.Start - min(x.Start, sums.Before); gone > 0 {
		fmt.Fprintf(w, " - %s that was there at the start and is gone", status.Bytes(gone))
	}
	now := sums.Before + sums.Attributed + sums.Unknown
	if now != x.End {
		fmt.Fprintf(w, "; %s came or went during the last look", signed(x.End, now))
	}
	fmt.Fprintln(w)
	if x.Touched > 0 {
		fmt.Fprintf(w, "  the process ended after the last look at its pages: the trace also contains %s that it touched then\n", status.Bytes(x.Touched))
	}
	fmt.Fprintf(w, "  still resident at the end: %d blocks, %s (touched while tracing)\n", s.Stats.LiveBlocks, status.Bytes(s.Stats.LiveBytes))
}

// signed returns the difference of two amounts with its sign.
func signed(a, b uint64) string {
	if a < b {
		return "-" + status.Bytes(b-a)
	}
	return "+" + status.Bytes(a-b)
}

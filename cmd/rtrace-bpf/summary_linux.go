package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/analysis/rss"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/recording"
	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/record"
)

// Sizes of the summary.
const (
	summarySites  = 5 // allocation sites with the most live bytes
	summaryFrames = 6 // frames of each, at least
)

// indent is before the lines of a summary that follow the first one.
const indent = "  "

// summary prints the summary of a trace.
func (r *reporter) summary(w io.Writer, s *recording.Summary) {
	stats := &s.Stats
	fmt.Fprint(w, name, ": ")
	if !s.Alone {
		fmt.Fprintf(w, "process %d: ", s.PID)
	}
	fmt.Fprint(w, callCounts(stats))
	if s.Regular {
		fmt.Fprintf(w, " in %s (%s)", s.Path, status.Bytes(uint64(s.Size)))
	}
	fmt.Fprintln(w)
	if s.Estimates != nil {
		budgetSummary(w, s)
	}
	r.verdictSummary(w, s)
	if s.Residence != nil {
		residenceSummary(w, s)
	} else {
		r.growthSummary(w, s.Growth)
	}
	if s.Runtime != "" {
		fmt.Fprintf(w, "  %s\n", s.Runtime)
	}
	if counts := resources(stats.Resources); len(counts) > 0 {
		fmt.Fprintf(w, "  of these: %s\n", strings.Join(counts, "; "))
	}
	if s.Residence == nil {
		r.liveSummary(w, stats)
	}
	r.stackSummary(w, s)
	r.comparison(w, s)
	for _, remark := range s.Remarks {
		fmt.Fprintf(w, "  %s: %s\n", r.config.format.name, remark)
	}
	if stats.Forks > 0 && !r.config.target.follow.on {
		fmt.Fprintf(w, "  children: %d, not traced; until they exec or the trace ends they pay for its probes\n", stats.Forks)
	}
	switch {
	case stats.LeftBehind:
		fmt.Fprintln(w, "  a thread other than the main one executed another program: its calls are not traced")
	case stats.MissesPrograms():
		fmt.Fprintln(w, "  the process executed a program with another allocator or none: its calls are not traced")
	}
	if s.Cost != nil {
		fmt.Fprintf(w, "  cost: %s\n", estimate.SlowDown(s.Cost))
	}
	fmt.Fprintf(w, "  lost: %d%s\n", stats.LostEvents(), losses(stats))
	if stats.Lost[order.LossPaused] > 0 {
		fmt.Fprintf(w, "  paused: %s\n", pauses(stats))
	}
	if sites := s.Sites(summarySites); len(sites) > 0 {
		what := "live"
		if s.Residence != nil {
			what = "resident"
		}
		printSites(w, what, sites, s.Frame)
	}
}

// verdictSummary prints which call sites grow, if that is known.
func (r *reporter) verdictSummary(w io.Writer, s *recording.Summary) {
	if s.Verdicts == nil {
		return
	}
	for _, line := range s.Verdicts(r.columns - len(indent)) {
		fmt.Fprintln(w, indent+line)
	}
}

// growthSummary prints how the resident memory grew, and the verdict if it grew outside
// the traced blocks. g is nil if the growth is unknown.
func (r *reporter) growthSummary(w io.Writer, g *rss.Growth) {
	if g == nil {
		return
	}
	if g.Elsewhere && !r.config.allocators.noLive && r.config.limits.budget == 0 {
		fmt.Fprintf(w, "  %s\n", g.Verdict)
	}
	fmt.Fprintf(w, "  RSS: %s at the start, %s at the end\n", status.Bytes(g.Start), status.Bytes(g.End))
}

// liveSummary prints the blocks that are live at the end.
func (r *reporter) liveSummary(w io.Writer, stats *record.Stats) {
	if r.config.limits.budget > 0 {
		return
	}
	if !r.config.allocators.noLive {
		fmt.Fprintf(w, "  live at the end: %d blocks, %s (allocated while tracing and not freed)\n",
			stats.LiveBlocks, status.Bytes(stats.LiveBytes))
		if stats.UnknownBlocks > 0 {
			fmt.Fprintf(w, "  %s\n", unknown(stats))
		}
	}
	if stats.Unmatched > 0 {
		fmt.Fprintf(w, "  unmatched frees: %d (of blocks allocated before the trace)\n", stats.Unmatched)
	}
}

// childSummary returns the line about a process that was followed.
func childSummary(s *recording.Summary) string {
	stats := &s.Stats
	text := fmt.Sprintf("process %d (%s): %s", s.PID, printable.Name(s.Name), callCounts(stats))
	if s.Regular {
		text += " in " + s.Path
	}
	var more []string
	if stats.Losses() > stats.Lost[order.LossPaused] {
		more = append(more, fmt.Sprintf("lost: %d%s", stats.LostEvents(), losses(stats)))
	}
	if stats.Lost[order.LossPaused] > 0 {
		more = append(more, pauses(stats))
	}
	if stats.MissesPrograms() {
		more = append(more, "it executed a program that is not traced")
	}
	if len(more) > 0 {
		text += "; " + strings.Join(more, "; ")
	}
	return text
}

// unknown returns the text about blocks that may have been freed in a pause.
func unknown(stats *record.Stats) string {
	return fmt.Sprintf("unknown: %d more blocks, %s, were live when the recording paused, and a pause misses frees: they are not counted as live or as leaks",
		stats.UnknownBlocks, status.Bytes(stats.UnknownBytes))
}

// callCounts returns the numbers of calls by kind.
func callCounts(stats *record.Stats) string {
	return fmt.Sprintf("%d events: %d allocations, %d frees, %d reallocations", stats.Calls, stats.Allocs, stats.Frees, stats.Moves)
}

// stackSummary prints how many stacks are complete.
func (r *reporter) stackSummary(w io.Writer, s *recording.Summary) {
	stats := &s.Stats
	var all uint64
	for _, n := range stats.Stacks {
		all += n
	}
	if all == 0 {
		return
	}
	fmt.Fprintf(w, "  stacks: %d (%d distinct), %s\n", all, stats.DistinctStacks, quality(stats))
	if s.CutStacks > 0 {
		fmt.Fprintf(w, "  stacks cut by the format: %d; --format jsonl holds all frames\n", s.CutStacks)
	}
	if r.config.stacks.verify > 0 {
		fmt.Fprintf(w, "  checked stacks: %d, %d differ", stats.Verified, stats.VerifyDiffers)
		if stats.Work.Unchecked > 0 {
			fmt.Fprintf(w, "; %d were left out, because the ring was busy", stats.Work.Unchecked)
		}
		fmt.Fprintln(w)
	}
}

// comparison prints how many allocations were compared with entry and return.
func (r *reporter) comparison(w io.Writer, s *recording.Summary) {
	if r.config.allocators.verify > 0 {
		fmt.Fprintf(w, "  compared allocations: %d, %d differ\n", s.Stats.Work.Compared, s.Stats.Work.Differ)
	}
}

// quality returns the numbers of stacks by how they ended. Stacks from unwind tables alone
// are counted apart from those that relied on a frame pointer.
func quality(stats *record.Stats) string {
	var parts []string
	add := func(n uint64, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	pointer := stats.FramePointer
	add(stats.Stacks[trace.StackComplete]-pointer[trace.StackComplete], "complete")
	add(pointer[trace.StackComplete], "complete with frame-pointer steps")
	add(stats.Stacks[trace.StackTruncated], "cut at the depth limit")
	add(stats.Stacks[trace.StackUnknown], "from the kernel's own walker")
	for _, reason := range slices.Sorted(maps.Keys(stats.Broken)) {
		add(stats.Broken[reason], "broken off ("+reason+")")
	}
	return strings.Join(parts, ", ")
}

// losses returns the kinds of losses with their counts in parentheses; empty for none.
func losses(stats *record.Stats) string {
	if list := recording.Losses(stats); list != "" {
		return " (" + list + ")"
	}
	return ""
}

// resources returns how many resources of each kind came and went.
func resources(counts []record.ResourceCount) []string {
	var all []string
	for _, c := range counts {
		if c.Allocs+c.Frees > 0 {
			all = append(all, fmt.Sprintf("%s %d, %d gone", c.Type, c.Allocs, c.Frees))
		}
	}
	return all
}

// printSites prints the call sites with the most bytes of what, with as many frames as distinguish
// them.
func printSites(w io.Writer, what string, sites []record.LiveSite, frame func(addr uint64) string) {
	fmt.Fprintf(w, "  most %s bytes:\n", what)
	for i, site := range sites {
		fmt.Fprintf(w, "    %s in %d blocks from\n", status.Bytes(site.Bytes), site.Blocks)
		shown := shownFrames(sites, i)
		for _, addr := range site.Frames[:shown] {
			fmt.Fprintf(w, "      %#x %s\n", addr, printable.Name(frame(addr)))
		}
		switch more := len(site.Frames) - shown; {
		case len(site.Frames) == 0:
			fmt.Fprintln(w, "      no stack was recorded")
		case more == 1:
			fmt.Fprintln(w, "      … 1 more frame")
		case more > 1:
			fmt.Fprintf(w, "      … %d more frames\n", more)
		}
	}
}

// shownFrames returns how many frames of site i are printed: summaryFrames, or as many as
// distinguish it from the others.
func shownFrames(sites []record.LiveSite, i int) int {
	frames := sites[i].Frames
	n := min(len(frames), summaryFrames)
	for j := range sites {
		if j == i {
			continue
		}
		same := 0
		for same < len(frames) && same < len(sites[j].Frames) && frames[same] == sites[j].Frames[same] {
			same++
		}
		if same >= summaryFrames {
			n = max(n, min(same+1, len(frames)))
		}
	}
	return n
}

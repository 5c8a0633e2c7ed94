package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer"
)

// Sizes of the summary.
const (
	summarySites  = 5 // allocation sites with the most live bytes
	summaryFrames = 6 // frames of each
)

// summary prints what was recorded, lost and left live.
func (x *session) summary(w io.Writer) error {
	stats := &x.stats
	fmt.Fprint(w, name, ": ")
	if !x.alone {
		fmt.Fprintf(w, "process %d: ", x.pid)
	}
	fmt.Fprint(w, callCounts(stats))
	if x.out.Regular() {
		fmt.Fprintf(w, " in %s (%s)", x.out.Path(), size(uint64(x.out.Size())))
	}
	fmt.Fprintln(w)
	if x.managed != nil {
		fmt.Fprintf(w, "  %s\n", x.managed.summary())
	}
	if counts := things(stats.Things); len(counts) > 0 {
		fmt.Fprintf(w, "  of these: %s\n", strings.Join(counts, "; "))
	}
	if !x.config.noLive {
		fmt.Fprintf(w, "  live at the end: %d blocks, %s (allocated while tracing and not freed)\n",
			stats.LiveBlocks, size(stats.LiveBytes))
		if stats.UnknownBlocks > 0 {
			fmt.Fprintf(w, "  %s\n", unknown(stats))
		}
	}
	if stats.Unmatched > 0 {
		fmt.Fprintf(w, "  unmatched frees: %d (of blocks allocated before the trace)\n", stats.Unmatched)
	}
	x.stackSummary(w, stats)
	for _, remark := range encoder.Remarks(x.encoder) {
		fmt.Fprintf(w, "  %s: %s\n", x.config.format, remark)
	}
	if stats.Forks > 0 && !x.config.follow.on {
		fmt.Fprintf(w, "  children: %d, not traced; until they exec or the trace ends they pay for its probes\n", stats.Forks)
	}
	switch {
	case stats.LeftBehind:
		fmt.Fprintln(w, "  a thread that is not the main one became another program: its calls are not traced")
	case stats.MissesPrograms():
		fmt.Fprintln(w, "  the process became a program with another allocator or none: its calls are not traced")
	}
	fmt.Fprintf(w, "  lost: %d%s\n", stats.LostEvents(), losses(stats))
	if stats.Lost[tracer.LossPaused] > 0 {
		fmt.Fprintf(w, "  %s\n", pauses(stats))
	}
	x.liveSites(w)
	return nil
}

// unknown says of which blocks frees may have been missed in a pause.
func unknown(stats *tracer.Stats) string {
	return fmt.Sprintf("unknown: %d more blocks, %s, were live when the recording paused, and frees are not seen in a pause: they are not counted as live or as leaks",
		stats.UnknownBlocks, size(stats.UnknownBytes))
}

// callCounts tells how many calls of which kind there were.
func callCounts(stats *tracer.Stats) string {
	return fmt.Sprintf("%d events: %d allocations, %d frees, %d reallocations", stats.Calls, stats.Allocs, stats.Frees, stats.Moves)
}

// stackSummary tells how good the stacks are.
func (x *session) stackSummary(w io.Writer, stats *tracer.Stats) {
	var all uint64
	for _, n := range stats.Stacks {
		all += n
	}
	if all == 0 {
		return
	}
	fmt.Fprintf(w, "  stacks: %d (%d distinct), %s\n", all, stats.DistinctStacks, quality(stats))
	if n := encoder.CutStacks(x.encoder); n > 0 {
		fmt.Fprintf(w, "  stacks cut by the format: %d; --format jsonl holds all frames\n", n)
	}
	if n := x.config.verifyUnwind; n > 0 {
		fmt.Fprintf(w, "  checked stacks: %d, %d differ", stats.Verified, stats.VerifyDiffers)
		if stats.Work.Unchecked > 0 {
			fmt.Fprintf(w, "; %d were left out, since the ring was busy", stats.Work.Unchecked)
		}
		fmt.Fprintln(w)
	}
}

// quality tells how many stacks ended how, those found by unwind tables alone
// apart from those that relied on a frame pointer.
func quality(stats *tracer.Stats) string {
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

func losses(stats *tracer.Stats) string {
	if list := lossList(stats); list != "" {
		return " (" + list + ")"
	}
	return ""
}

// lossList names the reasons with their counts.
func lossList(stats *tracer.Stats) string {
	var all []string
	for reason, n := range stats.Lost {
		if n > 0 && tracer.Loss(reason) != tracer.LossPaused {
			all = append(all, fmt.Sprintf("%s %d", tracer.Loss(reason), n))
		}
	}
	return strings.Join(all, ", ")
}

// liveSites prints where most live bytes were allocated.
func (x *session) liveSites(w io.Writer) {
	sites := x.tracer.LiveSites(summarySites)
	if len(sites) == 0 {
		return
	}
	fmt.Fprintln(w, "  most live bytes:")
	for _, site := range sites {
		fmt.Fprintf(w, "    %s in %d blocks from\n", size(site.Bytes), site.Blocks)
		for _, addr := range site.Frames[:min(len(site.Frames), summaryFrames)] {
			fmt.Fprintf(w, "      %#x %s\n", addr, printable.Name(x.names.frame(addr)))
		}
	}
}

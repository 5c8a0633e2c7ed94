package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"rtrace-bpf/encoder"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer"
)

// Sizes of the summary.
const (
	summarySites  = 5 // allocation sites with the most live bytes
	summaryFrames = 6 // frames of each
)

// summary prints what was recorded, lost and left live.
func (x *session) summary(stats *tracer.Stats) {
	w := x.streams.Err
	fmt.Fprintf(w, "%s: %d events: %d allocations, %d frees, %d reallocations", name,
		stats.Calls, stats.Allocs, stats.Frees, stats.Moves)
	if x.out.Regular() {
		fmt.Fprintf(w, " in %s (%s)", x.out.Path(), size(uint64(x.out.Size())))
	}
	fmt.Fprintln(w)
	if !x.config.noLive {
		fmt.Fprintf(w, "  live at the end: %d blocks, %s (allocated while tracing and not freed)\n",
			stats.LiveBlocks, size(stats.LiveBytes))
	}
	if stats.Unmatched > 0 {
		fmt.Fprintf(w, "  unmatched frees: %d (of blocks allocated before the trace)\n", stats.Unmatched)
	}
	x.stackSummary(w, stats)
	for _, remark := range encoder.Remarks(x.encoder) {
		fmt.Fprintf(w, "  %s: %s\n", x.config.format, remark)
	}
	if stats.Forks > 0 {
		fmt.Fprintf(w, "  children: %d, not traced; until they exec or the trace ends they pay for its probes\n", stats.Forks)
	}
	if stats.MissesPrograms() {
		fmt.Fprintln(w, "  the process became a program with another C library or none: its calls are not traced")
	}
	fmt.Fprintf(w, "  lost: %d%s\n", stats.LostEvents(), losses(stats))
	x.liveSites(w)
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
		if n > 0 {
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
			fmt.Fprintf(w, "      %#x %s\n", addr, x.names.frame(addr))
		}
	}
}

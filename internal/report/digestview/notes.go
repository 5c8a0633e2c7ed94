package digestview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/report/figure"
)

// note is something that a reader has to know of a trace.
type note struct {
	warn bool // figures are wrong or missing because of it
	text string
}

// lateNames is the loss that no event is missing for.
const lateNames = "sideband lost"

// reasons are the losses of rtrace-bpf in plain words.
var reasons = map[string]string{
	"ring full":           "the buffer between the kernel and the tracer was full (a larger --ring-size helps)",
	"state unavailable":   "the kernel had no room to remember an open call",
	"nesting limit":       "too many calls were open in one thread",
	"missed return":       "a call never returned: longjmp, an exception or the end of its thread",
	"stack failed":        "the stack could not be read; the call itself is there",
	lateNames:             "the kernel's record of a mapping or of a thread's name, which became known later: before, stacks and threads may lack their names; no call is missing",
	"argument unreadable": "the arguments of a call could not be read",
	"late record":         "a record came too late to be put in its place; only the order is in doubt",
	"program skipped":     "the kernel left out a probe because one was running on that processor",
	"record unfinished":   "a record was not complete when the tracing ended",
	"probed late":         "the file of a function that was to be told of was mapped before its probes were in",
	"probes moved":        "the thread with the probes ended, and they were attached to another one",
}

// notes says in plain words what is missing from a trace and what it cannot know.
func notes(r *digest.Result, o *Options) []note {
	var out []note
	warn := func(format string, args ...any) { out = append(out, note{true, fmt.Sprintf(format, args...)}) }
	say := func(format string, args ...any) { out = append(out, note{false, fmt.Sprintf(format, args...)}) }
	if o.Incomplete != "" {
		warn("The trace could not be read to its end: %s. The figures are of what could be read.", o.Incomplete)
	}
	missing := false
	for _, reason := range slices.SortedFunc(maps.Keys(r.Lost), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Lost[b].Count, r.Lost[a].Count), strings.Compare(a, b))
	}) {
		l := r.Lost[reason]
		switch text := reasons[reason]; {
		case reason == "paused":
			warn("The recording paused %s, for %s in all: nothing of that time is here.", plural(l.Count, "time"), figure.Seconds(uint64(l.Paused)))
		case text == "":
			warn("Lost %s: %s.", plural(l.Count, "event"), reason)
		default:
			warn("Lost %s: %s.", plural(l.Count, "time"), text)
		}
		missing = missing || reason != lateNames
	}
	if missing {
		say("Where events are lost, blocks count as never freed whose frees are missing, and other blocks are missing.")
	}
	if r.Beyond {
		warn("The sizes of all blocks together exceed 2^64 bytes: sums are modulo that, and shares of them mean nothing.")
	}
	if f := r.Header.Filter; f != "" {
		if slices.Contains(strings.Split(f, "|"), "leaks") {
			warn("The trace was filtered: only blocks that were never freed are in it. What was freed before, curves, peak and temporary blocks are not known.")
		} else if f != "resolve" {
			say("The trace was filtered before: %s.", f)
		}
	}
	if r.Traces > 1 {
		say("The file holds %s one behind the other. They are added up, and the axis is the number of the call, as their times overlap.", plural(uint64(r.Traces), "trace"))
	} else if r.Duration == 0 && r.FirstTime != 0 {
		say("All calls have the same time: the axis is the number of the call, and there are no rates per second.")
	} else if r.Duration == 0 && r.Calls > 0 {
		say("The trace has no times: the axis is the number of the call, and there are no rates per second.")
	}
	if r.Execs > 0 {
		say("The program was replaced by exec %s; the blocks of before are neither freed nor live.", plural(uint64(r.Execs), "time"))
	}
	if n := len(r.Resources) - maxCurves; n > 0 {
		say("The trace has %s of resources more than this page shows.", plural(uint64(n), "type"))
	}
	if r.Unfollowed > 0 {
		warn("Not counted: %s, as there are too many types of resources.", plural(r.Unfollowed, "call"))
	}
	return append(out, resourceNotes(r.Resources)...)
}

// resourceNotes are those of the types of resources. What is true of several is
// said once.
func resourceNotes(all []*digest.Resource) []note {
	var (
		out   []note
		types = make(map[note][]string)
		own   = 0 // resources that something was allocated of
	)
	for _, of := range all {
		if of.Total.Allocated.Blocks > 0 || of.Unmatched > 0 {
			own++
		}
		for _, n := range notesOf(of) {
			if types[n] == nil {
				out = append(out, n)
			}
			types[n] = append(types[n], of.Type)
		}
	}
	for i, n := range out {
		if t := types[n]; len(t) < own {
			out[i].text = shorten(strings.Join(t, ", ")) + ": " + n.text
		}
	}
	return out
}

// notesOf are those of one type of resource.
func notesOf(of *digest.Resource) (out []note) {
	warn := func(format string, args ...any) { out = append(out, note{true, fmt.Sprintf(format, args...)}) }
	say := func(format string, args ...any) { out = append(out, note{false, fmt.Sprintf(format, args...)}) }
	if of.Unmatched > 0 {
		say("%s of blocks that were not seen allocated: they are from before the recording, or their allocation is missing. They are not in the figures.", plural(of.Unmatched, "free"))
	}
	blocks, frees := of.Total.Allocated.Blocks, of.Frees+of.Moves > 0
	if blocks == 0 {
		return out
	}
	switch {
	case of.Sampled:
		warn("These are samples: some of the allocations, each with the bytes that it stands for, and no frees. Nothing can be said of leaks and of what is live: all counts as live to the end.")
	case !frees:
		say("The trace has no frees: all counts as live to the end.")
	}
	if of.Replaced > 0 && frees {
		warn("%s where a block was live: the free between was not seen. The older ones count as never freed.", plural(of.Replaced, "allocation"))
	}
	if !sized(of) {
		say("Sizes say nothing: what is counted are blocks.")
	}
	s := &of.Stacks
	switch with := s.Whole + s.Truncated + s.Failed; {
	case with == 0 && s.Callers > 0:
		say("The trace has no stacks, only the place of each call: stacks have one frame.")
	case with == 0:
		say("The trace has no stacks: where blocks come from is not known.")
	case s.Absent+s.Callers > 0:
		say("No stack is known of %s.", plural(s.Absent+s.Callers, "allocation"))
	}
	if s.Truncated > 0 {
		say("Cut at the limit of %d frames: the outermost frames of %s are missing.", s.Deepest, plural(s.Truncated, "stack"))
	}
	if s.Failed > 0 {
		say("Not followed to the end: %s.", plural(s.Failed, "stack"))
	}
	if frees && len(of.Threads) == 1 && of.Threads[0].ID == 0 {
		say("The trace does not tell threads apart. A temporary block is then one that is freed before the next allocation of any thread.")
	}
	return out
}

// plural is "1 block", "2,000 blocks".
func plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return figure.Count(n) + " " + what + "s"
}

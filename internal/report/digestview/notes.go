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

// reasons are the losses of rtrace-bpf in plain words.
var reasons = map[string]string{
	"ring full":           "the buffer between the kernel and the tracer was full (a larger --ring-size helps)",
	"state unavailable":   "the kernel had no room to remember an open call",
	"nesting limit":       "too many calls were open in one thread",
	"missed return":       "a call never returned: longjmp, an exception or the end of its thread",
	"stack failed":        "the stack could not be read; the call itself is there",
	"sideband lost":       "the kernel's record of a mapping or of a thread's name, which became known later: before, stacks and threads may lack their names; no call is missing",
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
	if r.RSS != nil && r.RSS.Elsewhere {
		warn("%s.", r.RSS.Verdict)
	}
	for _, reason := range slices.SortedFunc(maps.Keys(r.Lost), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Lost[b].Count, r.Lost[a].Count), strings.Compare(a, b))
	}) {
		l := r.Lost[reason]
		switch text := reasons[reason]; {
		case l.Gap && reason == "paused":
			warn("The recording paused %s, for %s in all: nothing of that time is here.", plural(l.Count, "time"), figure.Seconds(uint64(l.Missing)))
		case l.Gap:
			warn("Nothing was recorded %s, for up to %s in all: %s.", plural(l.Count, "time"), figure.Seconds(uint64(l.Missing)), text)
		case text == "":
			warn("Lost %s: %s.", plural(l.Count, "event"), reason)
		default:
			warn("Lost %s: %s.", plural(l.Count, "time"), text)
		}
	}
	if hidden := r.HiddenFrees(); hidden > 0 {
		say("Frees may be among the %s that are missing: as many of the blocks that count as still live may have been freed. Blocks may be missing, too.", plural(hidden, "call"))
	}
	if r.Beyond {
		warn("The sizes of all blocks together exceed 2^64 bytes: sums are modulo that, and shares of them mean nothing.")
	}
	if f := r.Header.Filter; f != "" {
		if slices.Contains(strings.Split(f, "|"), "leaks") {
			warn("The trace was filtered: only blocks that were still live at its end are in it. What was freed before, curves, peak and temporary blocks are not known.")
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
	blocks, frees := of.Total.Allocated.Blocks, of.Calls.Frees+of.Calls.Reallocs > 0
	if blocks == 0 {
		return out
	}
	switch {
	case of.Sampled:
		warn("These are samples: some of the allocations, each with the bytes that it stands for, and no frees. Nothing can be said of leaks and of what is live: all counts as live to the end.")
	case !frees:
		say("The trace has no frees: all counts as live to the end, or until its address comes again.")
	}
	if n := of.Total.Unknown; n.Blocks > 0 {
		warn("Unknown: %s (%s), live when the recording had a gap, when frees were not seen. They do not count as still live, but curves and the peak have them.",
			plural(n.Blocks, "block"), sizeText(of, n.Bytes))
	}
	if of.Replaced > 0 && frees {
		warn("%s where a block was live: the free between was not seen. The older blocks count as ended, but not as freed.", plural(of.Replaced, "allocation"))
	}
	if text := youngNote(&of.Young); text != "" {
		say("%s", text)
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
		say("The trace does not tell threads apart. A temporary block is then one that is freed before any thread allocates another one.")
	}
	return out
}

// youngNote is what is said of blocks that are live but may well be freed soon. It is
// package live's rule that decides, as in rtrace leaks.
func youngNote(young *digest.Young) string {
	switch young.Judge() {
	case digest.ManyFromBefore:
		return fmt.Sprintf("The recording is short compared with the lives of blocks: meanwhile %s from before it %s freed, and %s of its own are still live. Many of them may be freed later: a longer recording tells.",
			plural(young.Before, "block"), was(young.Before), figure.Count(young.Live))
	case digest.ShorterThanUsual:
		return fmt.Sprintf("The recording is short compared with the lives of blocks: it lasted %s, and 1 of 100 blocks that were freed lived about as long. Many of those that are still live may be freed later: a longer recording tells.",
			figure.Seconds(uint64(young.Recorded)))
	case digest.MostlyYoung:
		return fmt.Sprintf("Most of the blocks that are still live are young: %s were allocated in the last %s of the recording, and 99 of 100 blocks that were freed lived less long. rtrace leaks --min-age %v leaves them out.",
			figure.Percent(float64(young.Young)/float64(young.Live)), figure.Seconds(uint64(young.Usual)), young.Usual)
	}
	return ""
}

func was(n uint64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// sizeText is a number of bytes, or of what else sizes are.
func sizeText(of *digest.Resource, n uint64) string {
	if inBytes(of) {
		return figure.Bytes(n)
	}
	return plural(n, "unit")
}

// plural is "1 block", "2,000 blocks".
func plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return figure.Count(n) + " " + what + "s"
}

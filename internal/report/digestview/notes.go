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

// note is a remark about a trace for the reader.
type note struct {
	warn bool // figures are wrong or missing because of it
	text string
}

// reasons describes the reasons for lost events.
var reasons = map[string]string{
	"ring full":           "the buffer between the kernel and the tracer was full; use a larger --ring-size",
	"state unavailable":   "the kernel had no memory to store an open call",
	"nesting limit":       "calls were nested too deeply in one thread",
	"missed return":       "a call did not return, because of longjmp, an exception or the end of its thread",
	"stack failed":        "the stack could not be read; the call itself was recorded",
	"sideband lost":       "the kernel's record of a mapping or of a thread's name, which became known later; until then stacks and threads may lack names. No call is missing",
	"argument unreadable": "the arguments of a call could not be read",
	"late record":         "a record arrived too late to be sorted; only the order may be wrong",
	"program skipped":     "the kernel skipped a probe because another one was running on that processor",
	"record unfinished":   "a record was incomplete when tracing ended",
	"probed late":         "a file with traced functions was mapped before its probes were attached",
	"probes moved":        "the thread that held the probes ended, and they were attached to another one",
}

// notes returns remarks about what is missing from a trace and what it cannot
// show.
func notes(r *digest.Result, o *Options) []note {
	var out []note
	warn := func(format string, args ...any) { out = append(out, note{true, fmt.Sprintf(format, args...)}) }
	add := func(format string, args ...any) { out = append(out, note{false, fmt.Sprintf(format, args...)}) }
	if o.Incomplete != "" {
		warn("The trace could not be read to its end: %s. The figures cover the part before that.", o.Incomplete)
	}
	if r.RSS != nil && r.RSS.Elsewhere && o.Verdicts == nil {
		warn("%s.", r.RSS.Verdict)
	}
	for _, reason := range slices.SortedFunc(maps.Keys(r.Lost), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Lost[b].Count, r.Lost[a].Count), strings.Compare(a, b))
	}) {
		l := r.Lost[reason]
		switch text := reasons[reason]; {
		case l.Gap && reason == "paused":
			warn("The recording was paused %s, for %s in all. Nothing from that time was recorded.", plural(l.Count, "time"), figure.Seconds(uint64(l.Missing)))
		case l.Gap:
			warn("Nothing was recorded %s, for up to %s in all: %s.", plural(l.Count, "time"), figure.Seconds(uint64(l.Missing)), text)
		case text == "":
			warn("Lost %s: %s.", plural(l.Count, "event"), reason)
		default:
			warn("Lost %s: %s.", plural(l.Count, "time"), text)
		}
	}
	if hidden := r.Lost.HiddenFrees(); hidden > 0 {
		add("The %s that are missing may include frees, so as many of the blocks that count as still live may have been freed. Blocks may be missing, too.", plural(hidden, "call"))
	}
	if r.Beyond {
		warn("The sizes of all blocks add up to more than 2^64 bytes. Sums are modulo 2^64, and shares of them are meaningless.")
	}
	if f := r.Header.Filter; f != "" {
		if slices.Contains(strings.Split(f, "|"), "leaks") {
			warn("The trace was filtered: it contains only blocks that were still live at its end. Freed blocks, temporary blocks, the curves and the peak are therefore wrong or missing.")
		} else if f != "resolve" {
			add("The trace was filtered: %s.", f)
		}
	}
	if r.Traces > 1 {
		add("The file contains %s. They are added up, and the axis is the number of the call, because their times overlap.", plural(uint64(r.Traces), "trace"))
	} else if r.Duration == 0 && r.FirstTime != 0 {
		add("All calls have the same time: the axis is the number of the call, and there are no rates per second.")
	} else if r.Duration == 0 && r.Calls > 0 {
		add("The trace has no times: the axis is the number of the call, and there are no rates per second.")
	}
	if r.Execs > 0 {
		add("The program was replaced by exec %s. Blocks from before an exec count as neither freed nor live.", plural(uint64(r.Execs), "time"))
	}
	if n := len(r.Resources) - maxCurves; n > 0 {
		add("This page leaves out %s of resources.", plural(uint64(n), "type"))
	}
	if r.Unfollowed > 0 {
		warn("Not counted: %s, because there are too many types of resources.", plural(r.Unfollowed, "call"))
	}
	return append(out, resourceNotes(r.Resources)...)
}

// resourceNotes returns the notes on all types of resources. A note that
// applies to several is returned once.
func resourceNotes(all []*digest.Resource) []note {
	var (
		out   []note
		types = make(map[note][]string)
		own   = 0 // resources with allocations or unmatched frees
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

// notesOf returns the notes on one type of resource.
func notesOf(of *digest.Resource) (out []note) {
	warn := func(format string, args ...any) { out = append(out, note{true, fmt.Sprintf(format, args...)}) }
	add := func(format string, args ...any) { out = append(out, note{false, fmt.Sprintf(format, args...)}) }
	if of.Unmatched > 0 {
		add("%s of blocks whose allocation is not in the trace: it was before the recording or is missing. These frees are not counted.", plural(of.Unmatched, "free"))
	}
	blocks, frees := of.Total.Allocated.Blocks, of.Calls.Frees+of.Calls.Reallocs > 0
	if blocks == 0 {
		return out
	}
	switch {
	case of.Sampled:
		warn("These are samples: some of the allocations, each with the bytes that it represents, and no frees. They show neither leaks nor live memory; every block counts as live to the end.")
	case !frees:
		add("The trace has no frees: each block counts as live to the end, or until its address is allocated again.")
	}
	if n := of.Total.Unknown; n.Blocks > 0 {
		warn("Unknown: %s (%s) that were live at a gap in the recording and may have been freed in it. They do not count as still live, but are included in the curves and the peak.",
			plural(n.Blocks, "block"), sizeText(of, n.Bytes))
	}
	if of.Replaced > 0 && frees {
		warn("%s at the address of a live block, whose free is missing. The older blocks count as ended, but not as freed.", plural(of.Replaced, "allocation"))
	}
	if text := youngNote(&of.Young); text != "" {
		add("%s", text)
	}
	if !sized(of) {
		add("Sizes are meaningless: only blocks are counted.")
	}
	s := &of.Stacks
	switch with := s.Whole + s.Truncated + s.Failed; {
	case with == 0 && s.Callers > 0:
		add("The trace has no stacks, only the place of each call, which is shown as a stack of one frame.")
	case with == 0:
		add("The trace has no stacks: it is unknown where blocks were allocated.")
	case s.Absent+s.Callers > 0:
		add("%s without a stack.", plural(s.Absent+s.Callers, "allocation"))
	}
	if s.Truncated > 0 {
		add("Truncated to %d frames: the outermost frames of %s are missing.", s.Deepest, plural(s.Truncated, "stack"))
	}
	if s.Failed > 0 {
		add("Incomplete: %s could not be unwound to the end.", plural(s.Failed, "stack"))
	}
	if frees && len(of.Threads) == 1 && of.Threads[0].ID == 0 {
		add("The trace does not distinguish threads. A temporary block is therefore one that is freed before any thread allocates another one.")
	}
	return out
}

// youngNote returns a note about live blocks that may well be freed soon, or an
// empty string. Package live decides, as in rtrace leaks.
func youngNote(young *digest.Young) string {
	switch young.Judge() {
	case digest.ManyFromBefore:
		return fmt.Sprintf("The recording is short compared with the lifetimes of blocks: %s from before it %s freed during it, and %s of its own are still live. Many of these may be freed later. Record for longer to find out.",
			plural(young.Before, "block"), was(young.Before), figure.Count(young.Live))
	case digest.ShorterThanUsual:
		return fmt.Sprintf("The recording is short compared with the lifetimes of blocks: it lasted %s, and 1 in 100 of the freed blocks lived about as long. Many of the blocks that are still live may be freed later. Record for longer to find out.",
			figure.Seconds(uint64(young.Recorded)))
	case digest.MostlyYoung:
		return fmt.Sprintf("Most of the blocks that are still live are young: %s were allocated in the last %s of the recording, and 99 in 100 of the freed blocks had shorter lifetimes than that. rtrace leaks --min-age %v leaves them out.",
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

// sizeText formats a number of bytes, or of the resource's own units.
func sizeText(of *digest.Resource, n uint64) string {
	if inBytes(of) {
		return figure.Bytes(n)
	}
	return plural(n, "unit")
}

// plural formats a number with its noun: "1 block", "2,000 blocks".
func plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return figure.Count(n) + " " + what + "s"
}

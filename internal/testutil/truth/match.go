package truth

import (
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/trace"
)

// match compares an event of the trace with the next call of its thread in the log. It returns
// what is wrong, or "".
func (c *Checker) match(t *thread, got Event, rec *trace.Record) (string, error) {
	e, err := t.look()
	if err != nil {
		return "", err
	}
	if t.half != nil {
		return t.second(got), nil
	}
	wrong := "the thread made no further call that has an effect"
	if e != nil {
		if wrong = c.matchEntry(t, e, got, rec); wrong == "" {
			return "", nil
		}
	}
	if t.early(got) {
		c.Early++
		return "", nil
	}
	return wrong, nil
}

// matchEntry compares an event with an entry.
func (c *Checker) matchEntry(t *thread, e *Entry, got Event, rec *trace.Record) string {
	want := e.Event()
	if !e.Done {
		want = e.unfinished(got)
	}
	whole := got == want
	if !whole && (want.Op != trace.OpMove || got != want.freed()) {
		return "the calls differ"
	}
	if wrong := outside(e, rec); wrong != "" {
		return wrong
	}
	if whole {
		if wrong := c.stack(e, &rec.Call.Stack); wrong != "" {
			return wrong
		}
	} else {
		c.Split++
		half := want.made()
		t.half = &half
	}
	t.agreed(got, whole)
	return ""
}

// freed and made return the two events of a move that is recorded as two.
func (v Event) freed() Event {
	return Event{Op: trace.OpFree, Function: v.Function, Old: v.Old}
}

func (v Event) made() Event {
	return Event{Op: trace.OpAlloc, Function: v.Function, Made: v.Made, Size: v.Size}
}

// second compares the second of two events.
func (t *thread) second(got Event) string {
	if got != *t.half && (t.half.Size != 0 || got.Made != t.half.Made || got.Op != t.half.Op) {
		return fmt.Sprintf("the second half of a realloc should be: %s", t.half)
	}
	// The allocation that restores the block of a failed realloc has no entry of its own.
	again := t.entry == nil || t.entry.Event().made() != *t.half
	if again {
		t.half = nil
	}
	t.agreed(got, !again)
	return ""
}

// early handles the free of a realloc that took longer than the tracer waits and then failed.
func (t *thread) early(got Event) bool {
	if got.Op != trace.OpFree || !moves(got.Function) || !slices.Contains(t.undone, got.Old) {
		return false
	}
	t.half = &Event{Op: trace.OpAlloc, Function: got.Function, Made: got.Old}
	t.agreed(got, false)
	return true
}

// unfinished returns the event that a call that did not return may have in the trace. What the
// log does not contain is taken from the trace.
func (e *Entry) unfinished(got Event) Event {
	if e.Function == "free" {
		return e.Event()
	}
	v := Event{Op: trace.OpAlloc, Function: e.Canonical, Old: e.Old, Made: got.Made, Size: e.Size}
	switch {
	case e.Old != 0 && got.Op == trace.OpFree:
		v.Op, v.Made, v.Size = trace.OpFree, 0, 0
	case e.Old != 0:
		v.Op = trace.OpMove
	}
	return v
}

// outside returns an error text if the time of a record is outside its call.
func outside(e *Entry, rec *trace.Record) string {
	if rec.Time < e.Begin || e.Done && rec.Time > e.End {
		return fmt.Sprintf("the time in the trace is %d", rec.Time)
	}
	return ""
}

// stack compares the frames, if both sides have some. The trace's stack begins inside the shim,
// which the program does not know.
func (c *Checker) stack(e *Entry, s *trace.Stack) string {
	if len(e.Frames) == 0 || s.End == trace.StackAbsent || s.End == trace.StackUnknown {
		return ""
	}
	frames, log := s.Frames, c.log()
	for len(frames) > 0 && frames[0] >= log.Start && frames[0] < log.End {
		frames = frames[1:]
	}
	c.Stacks++
	n := len(e.Frames)
	switch {
	case s.End == trace.StackFailed && slices.Contains(newCode, s.Reason):
		c.Broken++
		n = min(n, len(frames))
	case s.End == trace.StackFailed:
		return fmt.Sprintf("the stack ends: %s", s.Reason) + stackText(frames, e.Frames)
	case s.End == trace.StackTruncated || n == c.Depth:
		n = min(n, len(frames))
	}
	if len(frames) < n || !slices.Equal(frames[:n], e.Frames[:n]) || n < len(frames) && n < c.Depth {
		return "the stacks differ" + stackText(frames, e.Frames)
	}
	return ""
}

// newCode holds the reasons why a stack is cut while libraries are loaded and unloaded. It
// leads through a library that has just replaced another one (docs/unwinding.md), or a
// frame-pointer step was tried for lack of its table and led to no code.
var newCode = []string{"unmapped", "frame-pointer"}

// stackText shows two stacks side by side.
func stackText(trace, log []uint64) string {
	var b strings.Builder
	at := func(all []uint64, i int) string {
		if i < len(all) {
			return fmt.Sprintf("%#x", all[i])
		}
		return "-"
	}
	for i := range max(len(trace), len(log)) {
		mark := " "
		if at(trace, i) != at(log, i) {
			mark = "!"
		}
		fmt.Fprintf(&b, "\n  %s %3d  trace %-18s  log %s", mark, i, at(trace, i), at(log, i))
	}
	return b.String()
}

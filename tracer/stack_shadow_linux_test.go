package tracer

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// shadowed checks a stack of the program "shadow", whose log ends where libc called main
// or the thread's function. The frames that follow must be libc's start code and, in the
// main thread, the program's _start.
func (r *stackRun) shadowed(rec *trace.Record, logged []uint64) string {
	frames := rec.Call.Stack.Frames
	n := min(len(frames), len(logged))
	if diff := r.diff(frames[:n], logged); diff != "" {
		return diff
	}
	want := []string{"/libc.so"} // clone
	if rec.TID == rec.PID {
		want = []string{"/libc.so", "/shadow"} // __libc_start_main, _start
	}
	rest := frames[n:]
	for i := range max(len(rest), len(want)) {
		if i >= len(rest) || i >= len(want) || !strings.Contains(r.name(rest[i]), want[i]) {
			text := ""
			for _, f := range rest {
				text += fmt.Sprintf("%#x %s\n", f, r.name(f))
			}
			return fmt.Sprintf("after %d right frames there are\n%swant frames of %q", n, text, want)
		}
	}
	return ""
}

// allShadowed checks that every stack of "shadow" is complete and correct, and was found
// with the help of frame pointers or not.
func (r *stackRun) allShadowed(framePointer bool) {
	r.t.Helper()
	f := faults{r: r}
	r.match(ownCalls, func(rec *trace.Record, logged []uint64) {
		f.seen++
		s := &rec.Call.Stack
		switch diff := r.shadowed(rec, logged); {
		case diff != "":
			f.is(rec, diff)
		case s.End != trace.StackComplete || s.FramePointer != framePointer:
			f.is(rec, fmt.Sprintf("the frames are right; want a complete stack, frame pointers used: %v", framePointer))
		}
	})
	f.report()
}

// allFailed checks that every stack of "shadow" is marked as incomplete, with a reason.
func (r *stackRun) allFailed(more func(s *trace.Stack, logged []uint64) string) {
	r.t.Helper()
	f := faults{r: r}
	r.match(ownCalls, func(rec *trace.Record, logged []uint64) {
		f.seen++
		s := &rec.Call.Stack
		if s.End != trace.StackFailed || s.Reason == "" {
			f.is(rec, "it cannot be known, but has no end with a reason:\n"+r.shadowed(rec, logged))
			return
		}
		if fault := more(s, logged); fault != "" {
			f.is(rec, fault)
		}
	})
	f.report()
}

// each checks every stack.
func (r *stackRun) each(fault func(s *trace.Stack, logged []uint64) string) {
	r.t.Helper()
	f := faults{r: r}
	r.match(ownCalls, func(rec *trace.Record, logged []uint64) {
		f.seen++
		if fault := fault(&rec.Call.Stack, logged); fault != "" {
			f.is(rec, fault)
		}
	})
	f.report()
}

// Programs without unwind tables: stacks follow their frame pointers if they have them.
// Otherwise they are incomplete and marked.
func TestStacksWithoutTables(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, withoutTablesAtAll)
}

func withoutTablesAtAll(t *testing.T, build testutil.Builder) {
	bare := func(t *testing.T, flags ...string) string {
		return build(t, "shadow", append(flags, testutil.WithoutTables...)...)
	}
	t.Run("frame-pointers-auto", func(t *testing.T) {
		r := tracedStacks(t, byTables(plan.UnwindAuto, nil), bare(t), "2000")
		r.allShadowed(true)
	})
	t.Run("frame-pointers-eh", func(t *testing.T) {
		r := tracedStacks(t, byTables(plan.UnwindEH, nil), bare(t), "2000")
		r.allFailed(onlyCaller)
	})
	t.Run("nothing-eh", func(t *testing.T) {
		r := tracedStacks(t, byTables(plan.UnwindEH, nil), bare(t, testutil.OmitFramePointers), "2000")
		r.allFailed(onlyCaller)
	})
	t.Run("nothing-auto", func(t *testing.T) {
		r := tracedStacks(t, byTables(plan.UnwindAuto, nil), bare(t, testutil.OmitFramePointers), "2000")
		guessed := func(s *trace.Stack, _ []uint64) string {
			if len(s.Frames) > 1 && !s.FramePointer {
				return "frames were guessed, but the stack is not marked"
			}
			return ""
		}
		if runtime.GOARCH == "arm64" {
			// Code that does not need x29 keeps it as it is: it leads to libc's frame
			// record, past the frames of the program.
			r.each(guessed)
		} else {
			r.allFailed(guessed)
		}
	})
}

// onlyCaller requires a stack that stops where the callers are unknown.
func onlyCaller(s *trace.Stack, _ []uint64) string {
	if len(s.Frames) != 1 || s.FramePointer {
		return "want the caller alone"
	}
	return ""
}

// A program compiled with frame pointers, unwound with these alone, and with the kernel's
// own helper, whose stacks must only exist.
func TestStacksByFramePointersAlone(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, byFramePointersAlone)
}

func byFramePointersAlone(t *testing.T, build testutil.Builder) {
	program := build(t, "shadow")
	t.Run("fp", func(t *testing.T) {
		r := tracedStacks(t, byTables(plan.UnwindFP, nil), program, "2000")
		f := faults{r: r}
		r.match(ownCalls, func(rec *trace.Record, logged []uint64) {
			f.seen++
			s := &rec.Call.Stack
			// After the last logged frame comes libc, which has no frame pointers.
			if diff := r.diff(s.Frames[:min(len(s.Frames), len(logged))], logged); diff != "" || !s.FramePointer {
				f.is(rec, diff)
			}
		})
		f.report()
	})
	t.Run("helper", func(t *testing.T) {
		r := tracedStacks(t, byTables(plan.UnwindHelper, nil), program, "2000")
		f := faults{r: r}
		r.match(ownCalls, func(rec *trace.Record, logged []uint64) {
			f.seen++
			if len(rec.Call.Stack.Frames) < 2 {
				f.is(rec, "no callers")
			}
		})
		f.report()
	})
	t.Run("none", func(t *testing.T) {
		r := tracedStacks(t, byTables(plan.UnwindNone, nil), program, "10")
		for _, rec := range ofKind(r.records, trace.KindCall) {
			if s := rec.Call.Stack; s.End != trace.StackAbsent || len(s.Frames) > 0 {
				t.Fatalf("call %d has a stack: %s %#x", rec.Call.Seq, s.End, s.Frames)
			}
		}
	})
}

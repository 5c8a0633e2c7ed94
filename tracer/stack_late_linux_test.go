package tracer

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// The size of a call shows what stacks_late does at that time.
func untilLetGo(c *trace.Call) bool { return c.Size >= 20000 && c.Size < 21000 }
func meanwhile(c *trace.Call) bool  { return c.Size >= 60000 && c.Size < 61000 }
func afterwards(c *trace.Call) bool { return c.Size >= 30000 && c.Size < 30500 }

// covers reports whether the programs have the tables of all frames by now. Before that,
// stacks are unwound from copies while there is room for them.
func (r *recording) covers(frames []uint64) bool {
	c := r.tracer.stream.Coverage()
	return !c.Doubtful() && len(c.Pending) == 0 && !slices.ContainsFunc(frames, func(addr uint64) bool {
		return !c.Trusts(addr, true)
	})
}

// late records stacks_late, whose arguments follow the log's path, from its gate. When a
// stack of its loop is complete and the programs have its tables, late lets it continue;
// from then on all stacks must be complete.
func late(t *testing.T, way plan.Unwind, child *testutil.Child, log string) *stackRun {
	t.Helper()
	found := make(chan struct{})
	seen := false
	r := watched(t, child.PID, byTables(way, func(o *plan.Options) { o.BacktraceAll = true }), func(r *recording, rec *trace.Record) {
		if seen || rec.Kind != trace.KindCall || !untilLetGo(&rec.Call) {
			return
		}
		if s := &rec.Call.Stack; s.End == trace.StackComplete && !s.FramePointer && r.covers(s.Frames) {
			seen = true
			close(found)
		}
	})
	child.Go()
	return letGo(t, child, r, found, log)
}

// letGo lets stacks_late out of its loop once found is closed.
func letGo(t *testing.T, child *testutil.Child, r *recording, found chan struct{}, log string) *stackRun {
	t.Helper()
	select {
	case <-found:
		child.Go()
	case <-child.Exited():
		t.Errorf("no stack became complete: %s", child.Stderr())
	}
	return ended(t, child, r, log)
}

// settled checks that no stack is wrong, that all are complete after the program left its
// loop, and that those of the thread that does not use the libraries are complete at any
// time.
func (r *stackRun) settled(s scope) {
	r.t.Helper()
	complete, after, aside := 0, 0, 0
	n := r.honest(s, func(rec *trace.Record, ok bool) {
		switch {
		case ok:
			complete++
		case meanwhile(&rec.Call):
			aside++
		case afterwards(&rec.Call):
			r.t.Errorf("call %d: stack %s %s", rec.Call.Seq, rec.Call.Stack.End, rec.Call.Stack.Reason)
		}
		if afterwards(&rec.Call) {
			after++
		}
	})
	if aside > 0 {
		r.t.Errorf("%d stacks without a library are not complete", aside)
	}
	if after != 500 {
		r.t.Errorf("%d stacks in the end, want 500", after)
	}
	r.t.Logf("%d of %d stacks are complete", complete, n)
}

// Libraries that are opened during the trace: from the first call on no stack through
// them is wrong, and soon all are complete. When another library is mapped at the address
// of one that was closed, the tables of the old one are not used.
func TestStacksThroughLateLibraries(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, throughLateLibraries)
}

func throughLateLibraries(t *testing.T, build testutil.Builder) {
	program := build(t, "stacks_late", testutil.OmitFramePointers)
	small, large := testutil.Plugs(t, build)
	tests := map[string][]string{
		"one":         {"0", small},
		"in-turn":     {"100", small, large},
		"many-rounds": {"300", large, small},
	}
	sweep := testutil.Sweep(t)
	for name, args := range tests {
		for _, way := range []plan.Unwind{plan.UnwindEH, plan.UnwindAuto} {
			if !sweep && name == "many-rounds" && way == plan.UnwindEH {
				continue // only UnwindAuto
			}
			t.Run(fmt.Sprintf("%s-%s", name, way), func(t *testing.T) {
				log := testutil.StackLogPath(t)
				child := testutil.Spawn(t, program, append([]string{log}, args...)...)
				child.Ready()
				r := late(t, way, child, log)
				r.settled(allCalls)
				// The tables of a single library can be there before its first call.
				if len(args) > 2 {
					if n := r.tracer.Stats().Late; n == 0 {
						t.Error("no stack was unwound from a copy")
					}
					r.sameAddress(small, large)
				}
			})
		}
	}
}

// sameAddress checks that both files were mapped at one address: otherwise the test would
// prove nothing.
func (r *stackRun) sameAddress(a, b string) {
	r.t.Helper()
	at := map[uint64]map[string]bool{}
	for _, rec := range ofKind(r.records, trace.KindMapping) {
		if p := rec.Mapping.Path; p == a || p == b {
			if at[rec.Mapping.Start] == nil {
				at[rec.Mapping.Start] = map[string]bool{}
			}
			at[rec.Mapping.Start][p] = true
		}
	}
	for _, paths := range at {
		if len(paths) == 2 {
			return
		}
	}
	r.t.Errorf("the libraries had no address in common: %v", at)
}

// After an exec the tables of the new program are used, at once or soon after, and those
// of the old one are not.
func TestStacksAfterExec(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, stacksAfterExec)
}

func stacksAfterExec(t *testing.T, build testutil.Builder) {
	needSteps(t)
	first := build(t, "exec", testutil.OmitFramePointers)
	second := build(t, "stacks_late", testutil.OmitFramePointers)
	for _, way := range []plan.Unwind{plan.UnwindEH, plan.UnwindAuto} {
		t.Run(way.String(), func(t *testing.T) {
			log := testutil.StackLogPath(t)
			// Without address randomization both programs have the same addresses.
			child := testutil.Start(t, exec.Command("setarch", "-R", first, "200", second, log, "0"))
			child.Ready()
			found := make(chan struct{})
			execs := false
			r := watched(t, child.PID, byTables(way, nil), func(r *recording, rec *trace.Record) {
				switch {
				case rec.Kind == trace.KindExec:
					execs = true
				case rec.Kind == trace.KindCall && execs && found != nil && untilLetGo(&rec.Call) && rec.Call.Stack.End == trace.StackComplete && r.covers(rec.Call.Stack.Frames):
					execs = false
					close(found)
				}
			})
			child.Go()
			child.Ready() // the second program
			child.Go()
			run := letGo(t, child, r, found, log)
			run.settled(ownCalls)
			for _, rec := range ofKind(run.records, trace.KindCall) {
				if s := rec.Call.Stack; rec.Call.Size == 100 && s.End != trace.StackComplete {
					t.Errorf("call %d, before exec: stack %s %s", rec.Call.Seq, s.End, s.Reason)
				}
			}
		})
	}
}

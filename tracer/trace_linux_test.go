package tracer

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// Every mechanism, every way to find sites, every place of state and every buffer gives
// the same calls, one by one, as the program's own log.
func TestEveryCallOfEveryThread(t *testing.T) {
	testutil.NeedBPF(t)
	all := everyWay()
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		everyCallOfEveryThread(t, build(t, "alloc"), all)
		all = ways(t) // these suffice for the second width
	})
}

func everyCallOfEveryThread(t *testing.T, program string, all []way) {
	sweep := testutil.Sweep(t)
	for i, way := range all {
		for _, threads := range []int{1, 8} {
			if !sweep && threads == 1 && i > 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s-%d", way.name, threads), func(t *testing.T) {
				r, report, records := traceRun(t, way.set, program, strconv.Itoa(threads), strconv.Itoa(8000/threads), "log")
				compare(t, records, report)
				if s := r.tracer.Stats(); s.LiveBlocks != threads || s.Unmatched != 0 {
					t.Errorf("%d blocks live and %d frees unmatched, want %d and 0", s.LiveBlocks, s.Unmatched, threads)
				}
			})
		}
	}
}

// Each function of the memory module, its failures and its corner cases.
func TestEveryFunction(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, everyFunction)
}

func everyFunction(t *testing.T, build testutil.Builder) {
	for _, all := range []bool{false, true} {
		t.Run(fmt.Sprintf("backtrace-all=%v", all), func(t *testing.T) {
			_, report, records := traceRun(t, func(o *plan.Options) { o.BacktraceAll = all }, build(t, "every"))
			compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
			for _, rec := range ofKind(records, trace.KindCall) {
				want := rec.Call.Op != trace.OpFree || rec.Call.Function != "free" || all
				if got := rec.Call.Stack.End != trace.StackAbsent; got != want {
					t.Errorf("call %d, %s: stack recorded: %v, want %v", rec.Call.Seq, rec.Call.Function, got, want)
				}
			}
		})
	}
}

// canonical joins the names memalign and aligned_alloc: glibc has one function for both,
// and the trace does not show which name was called.
func canonical(records []*trace.Record) []*trace.Record {
	for _, rec := range records {
		if rec.Kind == trace.KindCall && rec.Call.Function == "memalign" {
			rec.Call.Function = "aligned_alloc"
		}
	}
	return records
}

func canonicalCalls(all []testutil.Call) []testutil.Call {
	for i := range all {
		if all[i].Function == "memalign" {
			all[i].Function = "aligned_alloc"
		}
	}
	return all
}

// Stacks of a program with frame pointers: the real return address first, then its
// callers by name, and no address outside of code.
func TestStacksByFramePointer(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, stacksByFramePointer)
}

func stacksByFramePointer(t *testing.T, build testutil.Builder) {
	_, report, records := traceRun(t, func(o *plan.Options) { o.Unwind = plan.UnwindFP }, build(t, "leak"))
	comparePointers(t, report, records)
}

// comparePointers compares stacks that were found by frame pointers with what the program leak
// reports.
func comparePointers(t *testing.T, report *testutil.Report, records []*trace.Record) {
	t.Helper()
	live := map[uint64]*trace.Record{}
	for _, rec := range ofKind(records, trace.KindCall) {
		if rec.Call.Op != trace.OpFree {
			live[rec.Call.ID] = rec
		}
		switch rec.Call.Op {
		case trace.OpFree:
			delete(live, rec.Call.ID)
		case trace.OpMove:
			if rec.Call.OldID != rec.Call.ID {
				delete(live, rec.Call.OldID)
			}
		}
	}
	names := resolved(records)
	got := map[string]uint64{}
	for _, rec := range live {
		s := rec.Call.Stack
		if len(s.Frames) < 2 || !s.FramePointer {
			t.Errorf("call %d: stack %#x", rec.Call.Seq, s.Frames)
			continue
		}
		for i, addr := range s.Frames {
			text := names(addr)
			if text == "in ??" {
				t.Errorf("call %d, frame %d: %#x is not code", rec.Call.Seq, i, addr)
			}
			if name, _, _ := strings.Cut(text, "("); strings.HasPrefix(name, "alloc_") {
				got[name] += rec.Call.Size
				break
			}
		}
	}
	for function, size := range report.Leaks {
		if got[function] != size {
			t.Errorf("%s leaked %d bytes, the trace has %d", function, size, got[function])
		}
	}
}

func TestDepthCutsStacks(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, depthCutsStacks)
}

func depthCutsStacks(t *testing.T, build testutil.Builder) {
	program := build(t, "leak")
	for _, depth := range []int{0, 1, 2} {
		child := testutil.Spawn(t, program)
		child.Ready()
		r := attachTo(t, child.PID, func(o *plan.Options) { o.Depth = depth })
		child.Go()
		child.Succeed()
		cut := 0
		for _, rec := range ofKind(r.end(), trace.KindCall) {
			s := rec.Call.Stack
			if len(s.Frames) > depth {
				t.Errorf("depth %d: %d frames", depth, len(s.Frames))
			}
			if s.End == trace.StackTruncated {
				cut++
			}
		}
		if (depth > 0) != (cut > 0) {
			t.Errorf("depth %d: %d stacks are marked as cut", depth, cut)
		}
	}
}

// Blocks below the limit are left out with their frees; a realloc across the limit
// becomes an allocation or a free.
func TestMinSize(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, minSize)
}

func minSize(t *testing.T, build testutil.Builder) {
	const limit = 300
	every := build(t, "every")
	_, report, records := traceRun(t, func(o *plan.Options) { o.MinSize = limit }, build(t, "alloc"), "2", "1000", "log")
	compare(t, records, &testutil.Report{Calls: limited(report.Calls, limit)})
	// Each function, including realloc without an old block.
	_, report, records = traceRun(t, func(o *plan.Options) { o.MinSize = limit }, every)
	compare(t, canonical(records), &testutil.Report{Calls: limited(canonicalCalls(report.Calls), limit)})
}

// limited returns what a log contains with a size limit. It implements the documented
// rule, independently of the tracer.
func limited(all []testutil.Call, limit uint64) []testutil.Call {
	live := map[uint64]bool{}
	var out []testutil.Call
	for _, c := range all {
		switch c.Op {
		case "alloc":
			if c.Size < limit {
				continue
			}
		case "free":
			if !live[c.Old] {
				continue
			}
		case "move":
			switch old := live[c.Old]; {
			case old && c.Size < limit:
				c.Op, c.Ptr, c.Size = "free", 0, 0
			case !old && c.Size < limit:
				continue
			case !old:
				c.Op, c.Old = "alloc", 0
			}
		}
		delete(live, c.Old)
		if c.Op != "free" {
			live[c.Ptr] = true
		}
		out = append(out, c)
	}
	return out
}

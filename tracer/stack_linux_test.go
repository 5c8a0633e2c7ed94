package tracer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// stackRun is the trace of a program that logged its own stacks.
type stackRun struct {
	*recording
	log     []testutil.LoggedCall
	records []*trace.Record
	name    func(uint64) string
	thunks  int // number of stacks that end for lack of call frame information; see inThunk
}

// byTables sets the way to unwind, with room for all stacks of the programs that log
// theirs. more may be nil.
func byTables(way plan.Unwind, more func(o *plan.Options)) func(o *plan.Options) {
	return func(o *plan.Options) {
		belowTheLog(o)
		o.Unwind, o.Depth = way, 128
		if more != nil {
			more(o)
		}
	}
}

// belowTheLog traces the C library alone: programs that log their stacks define functions
// with its names, which would be traced instead.
func belowTheLog(o *plan.Options) { o.Allocators = []string{"glibc"} }

// tracedStacks records a program that logs its stacks to the file in its first argument,
// from its gate to its end. The trace must be complete.
func tracedStacks(t *testing.T, change func(o *plan.Options), program string, args ...string) *stackRun {
	t.Helper()
	path := testutil.StackLogPath(t)
	child := testutil.Spawn(t, program, append([]string{path}, args...)...)
	child.Ready()
	r := attachTo(t, child.PID, func(o *plan.Options) {
		belowTheLog(o)
		change(o)
	})
	child.Go()
	return ended(t, child, r, path)
}

// ended waits for the end of a program that logs its stacks to path.
func ended(t *testing.T, child *testutil.Child, r *recording, path string) *stackRun {
	t.Helper()
	child.Succeed()
	records := r.end()
	r.whole()
	return &stackRun{recording: r, log: testutil.StackLog(t, path), records: records, name: resolved(records)}
}

// scope selects the calls that a log contains.
type scope bool

const (
	allCalls scope = true  // every call of the process: trace and log agree call for call
	ownCalls scope = false // the calls of the program's own code; libraries make others
)

// match calls check for each logged call with its record, if the record has a stack.
func (r *stackRun) match(s scope, check func(rec *trace.Record, logged []uint64)) {
	r.t.Helper()
	want := map[int32][]testutil.LoggedCall{}
	for _, c := range r.log {
		want[int32(c.TID)] = append(want[int32(c.TID)], c)
	}
	for _, rec := range ofKind(r.records, trace.KindCall) {
		rest := want[rec.TID]
		same := len(rest) > 0 && sameCall(&rec.Call, &rest[0])
		if s == ownCalls && same && len(rec.Call.Stack.Frames) > 0 {
			// A library may free and allocate the same block again.
			same = r.sameFunction(rec.Call.Stack.Frames[0], rest[0].Frames[0])
		}
		if !same {
			if s == ownCalls {
				continue
			}
			r.t.Fatalf("call %d of thread %d is not the next one of the log:\n trace  %s\n logged %s",
				rec.Call.Seq, rec.TID, describeCall(&rec.Call), describeNext(rest))
		}
		if rec.Call.Stack.End != trace.StackAbsent {
			check(rec, rest[0].Frames)
		}
		// A move that was split is two calls in the trace.
		if rest[0].Op != "move" || rec.Call.Op != trace.OpFree {
			want[rec.TID] = rest[1:]
		}
	}
	for tid, rest := range want {
		if len(rest) > 0 {
			r.t.Errorf("thread %d: %d logged calls are not in the trace; the first is %s", tid, len(rest), describeNext(rest))
		}
	}
}

// sameCall reports whether c is the logged call, or a half of the logged move.
func sameCall(c *trace.Call, logged *testutil.LoggedCall) bool {
	switch c.Op {
	case trace.OpFree:
		return logged.Op != "alloc" && logged.Old == c.ID
	case trace.OpMove:
		return logged.Op == "move" && logged.Old == c.OldID && logged.Ptr == c.ID && logged.Size == c.Size
	}
	return logged.Op != "free" && logged.Ptr == c.ID && logged.Size == c.Size
}

func describeCall(c *trace.Call) string {
	return fmt.Sprintf("%s %s old=%#x id=%#x size=%d", c.Op, c.Function, c.OldID, c.ID, c.Size)
}

func describeNext(rest []testutil.LoggedCall) string {
	if len(rest) == 0 {
		return "nothing more"
	}
	return describe(rest[0].Call)
}

// sameFunction reports whether two addresses are in one function that has a name.
func (r *stackRun) sameFunction(a, b uint64) bool {
	x, _, _ := strings.Cut(r.name(a), "(")
	y, _, _ := strings.Cut(r.name(b), "(")
	return a == b || x == y && !strings.Contains(x, "??")
}

// diff compares a stack of the trace with the logged one.
func (r *stackRun) diff(got, logged []uint64) string {
	return testutil.StackDiff(got, logged, r.sameFunction, r.name)
}

// faults reports the first few of many wrong stacks.
type faults struct {
	r     *stackRun
	n     int
	seen  int
	where map[string]int // counts, by end, reason and the function in which the stack ended
}

// is reports that rec's stack is wrong.
func (f *faults) is(rec *trace.Record, what string) {
	f.r.t.Helper()
	s := &rec.Call.Stack
	if f.where == nil {
		f.where = map[string]int{}
	}
	last := "nowhere"
	if n := len(s.Frames); n > 0 {
		last = f.r.name(s.Frames[n-1])
	}
	f.where[fmt.Sprintf("%s %s at %s", s.End, s.Reason, last)]++
	if f.n++; f.n <= 3 {
		f.r.t.Errorf("call %d of thread %d, %s: stack of %d frames is %s %s, frame pointer used: %v\n%s",
			rec.Call.Seq, rec.TID, describeCall(&rec.Call), len(s.Frames), s.End, s.Reason, s.FramePointer, what)
	}
}

// report logs the counts and returns how many stacks were checked.
func (f *faults) report() int {
	f.r.t.Helper()
	if f.n > 0 {
		f.r.t.Errorf("%d of %d stacks are wrong:", f.n, f.seen)
		for _, what := range slices.Sorted(maps.Keys(f.where)) {
			f.r.t.Logf("%8d %s", f.where[what], what)
		}
	}
	if f.seen == 0 {
		f.r.t.Error("no stack was compared")
	}
	return f.seen
}

// exact checks that each stack of the trace is complete, was found with tables alone, and
// is the logged one. It returns the number of stacks.
func (r *stackRun) exact(s scope) int {
	r.t.Helper()
	f := faults{r: r}
	r.match(s, func(rec *trace.Record, logged []uint64) {
		f.seen++
		got := &rec.Call.Stack
		if r.inThunk(logged) && (got.End == trace.StackFailed || got.FramePointer) {
			r.thunks++
			got = &trace.Stack{Frames: got.Frames[:min(len(got.Frames), len(logged))], End: trace.StackComplete}
		}
		switch diff := r.diff(got.Frames, logged); {
		case diff != "":
			f.is(rec, diff)
		case got.End != trace.StackComplete || got.FramePointer:
			f.is(rec, "the frames are right")
		}
	})
	return f.report()
}

// inThunk reports whether a stack ends for lack of call frame information: a program for
// 32-bit x86 gets its own address from a function of crt1.o, which has none.
func (r *stackRun) inThunk(logged []uint64) bool {
	// The name is that of the byte before the address, where calls are.
	return strings.Contains(r.name(logged[len(logged)-1]+1), "__x86.get_pc_thunk.")
}

// honest checks that each stack of the trace is the logged one or is marked as
// incomplete, and that it is correct as far as it goes, unless frame pointers were used.
// It calls of with each stack and whether it is complete.
func (r *stackRun) honest(s scope, of func(rec *trace.Record, complete bool)) int {
	r.t.Helper()
	f := faults{r: r}
	r.match(s, func(rec *trace.Record, logged []uint64) {
		f.seen++
		got := &rec.Call.Stack
		of(rec, got.End == trace.StackComplete)
		diff := r.diff(got.Frames, logged)
		switch got.End {
		case trace.StackComplete:
			if diff != "" {
				f.is(rec, diff)
			}
		case trace.StackFailed:
			if got.Reason == "" {
				f.is(rec, "no reason is given")
			}
			if diff = r.diff(got.Frames, logged[:min(len(logged), len(got.Frames))]); diff != "" && !got.FramePointer {
				f.is(rec, diff)
			}
		default:
			f.is(rec, "neither complete nor failed")
		}
	})
	return f.report()
}

package tracer

import (
	"bytes"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
)

// The program midcall makes calls of malloc in the middle of which something happens: at each of
// their instructions in turn.

// midcall records the program.
func midcall(t *testing.T, how string, set func(o *plan.Options)) (*recording, *testutil.Child) {
	t.Helper()
	child := testutil.Spawn(t, testutil.Build(t, "midcall"), how)
	child.Ready()
	r := attachTo(t, child.PID, set)
	child.Go()
	return r, child
}

// A call that is left before it has taken its block from the thread's cache is not in the trace; a
// call that has taken it is, and no call is lost. At the few instructions between the site and the
// one that takes the block, the call is in the trace, and so is the next one, which gets the block.
func TestPathsLeftAtEachInstruction(t *testing.T) {
	testutil.NeedBPF(t)
	r, child := midcall(t, "jump", withPaths)
	log := child.Report().Calls
	trace := calls(r.end())[log[0].TID]
	none, both, taken := 0, uint64(0), uint64(0)
	for i, c := range log {
		if c.Op != "none" { // it must be the next one of the trace
			if len(trace) == 0 || trace[0] != c {
				t.Fatalf("logged call %d is %s; the trace has %d more calls: %v", i, describe(c), len(trace), trace[:min(1, len(trace))])
			}
			trace = trace[1:]
			continue
		}
		c.Op = "alloc"
		hasTaken := log[i+1].Ptr != c.Ptr
		recorded := len(trace) > 1 && trace[0] == c && (hasTaken || trace[1] == c)
		switch {
		case hasTaken && !recorded:
			t.Errorf("a call took its block and was left, and is not in the trace: %s", describe(c))
		case !recorded && both+taken > 0, !hasTaken && taken > 0:
			t.Errorf("call %d was left at a later instruction than one that is in the trace, or took its block: %s", i, describe(c))
		case hasTaken:
			taken++
		case recorded:
			both++
		default:
			none++
		}
		if recorded {
			trace = trace[1:]
		}
	}
	t.Logf("left before the site: %d, between the site and the taking of the block: %d, later: %d", none, both, taken)
	if none == 0 || taken == 0 || len(trace) != 0 {
		t.Errorf("%d calls more in the trace than made", len(trace))
	}
	if s := r.tracer.Stats(); s.Losses() != 0 || s.Replaced != both {
		t.Errorf("lost: %v; %d addresses were live twice, want %d", s.Lost, s.Replaced, both)
	}
}

// A call that maps its block, and whose arguments are noted before the block is known, leaves
// nothing that the next one could take for its own.
func TestPathsLeftBetweenNoteAndBlock(t *testing.T) {
	testutil.NeedBPF(t)
	r, child := midcall(t, "large", withPaths)
	log := child.Report().Calls
	left := map[uint64]int{} // the calls that were left, by size
	for _, c := range log {
		if c.Op == "none" {
			left[c.Size] = len(left)
		}
	}
	recorded, first := 0, len(left)
	var rest []*trace.Record
	blocks := map[uint64]bool{}
	for _, rec := range ofKind(r.end(), trace.KindCall) {
		at, ok := left[rec.Call.Size]
		if !ok || rec.Call.Op != trace.OpAlloc {
			rest = append(rest, rec)
			continue
		}
		if blocks[rec.Call.ID] {
			t.Errorf("two calls have the block %#x", rec.Call.ID)
		}
		blocks[rec.Call.ID] = true
		recorded, first = recorded+1, min(first, at)
	}
	compare(t, rest, &testutil.Report{Calls: log})
	t.Logf("%d of %d calls that were left are in the trace, from instruction %d on", recorded, len(left), first+1)
	if recorded == 0 || recorded != len(left)-first {
		t.Errorf("%d calls in the trace, want those that were left at the last %d instructions", recorded, len(left)-first)
	}
	r.whole()
}

// A process that forks, or lends its memory to a child, in the middle of malloc has the calls of
// its own log and no others. The child of the fork completes the call.
func TestForkInTheMiddleOfACall(t *testing.T) {
	testutil.NeedBPF(t)
	for _, how := range []string{"fork", "vfork"} {
		for _, way := range []way{{"paths", withPaths}, {"returns", withReturns}} {
			t.Run(how+"-"+way.name, func(t *testing.T) {
				t.Parallel() // the tests mostly wait
				r, child := midcall(t, how, way.set)
				if how == "fork" && way.name == "returns" && host.KnowsShadowStacks() == nil {
					killedInStub(t, child)
					r.end()
					return
				}
				report := child.Report()
				compare(t, r.end(), report)
				r.whole()
			})
		}
	}
}

// killedInStub requires that a child was killed because its parent forked in the stub to which
// calls with return probes return, after the stub's system call: then the child has no stub.
func killedInStub(t *testing.T, child *testutil.Child) {
	t.Helper()
	if code := child.Wait(); code != 97 || !bytes.Contains(child.Stderr(), []byte("the child ended with status 0xb")) {
		t.Errorf("exit code %d, %q: want a child that was killed with SIGSEGV", code, child.Stderr())
	}
}

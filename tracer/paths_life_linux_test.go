package tracer

import (
	"os"
	"os/exec"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

func withPaths(o *plan.Options) { o.Ways = plan.WaysPaths }

func withReturns(o *plan.Options) { o.Ways = plan.WaysReturns }

// Threads that end, with the frees that glibc makes for itself then.
func TestPathsOfThreadsThatExit(t *testing.T) {
	testutil.NeedBPF(t)
	r, report, records := traceRun(t, byPaths(func(*plan.Options) {}), testutil.Build(t, "threads_exit"), "200")
	compare(t, records, report)
	checkSites(t, r, 500)
	if s := r.tracer.Stats(); s.Unmatched != 0 || s.LiveBlocks != 8 {
		t.Errorf("%d unmatched frees, %d blocks live; want 0 and 8", s.Unmatched, s.LiveBlocks)
	}
}

// A program that executes another one.
func TestPathsAfterExec(t *testing.T) {
	testutil.NeedBPF(t)
	execTraced(t, exec.Command(testutil.Build(t, "exec"), "10", testutil.Build(t, "every")), withPaths)
}

// Libraries that are loaded and unloaded call malloc: each call of theirs is there.
func TestPathsOfLateLibraries(t *testing.T) {
	testutil.NeedBPF(t)
	plug := testutil.Build(t, "plug", "-shared", "-fPIC")
	r, report, records := traceRun(t, byPaths(func(*plan.Options) {}), testutil.Build(t, "dl"), plug, "5")
	live := map[uint64]uint64{}
	for _, rec := range ofKind(records, trace.KindCall) {
		if rec.Call.Op == trace.OpAlloc {
			live[rec.Call.ID] = rec.Call.Size
		}
	}
	for _, c := range report.Done() {
		if live[c.Ptr] != c.Size {
			t.Errorf("block %#x has %d bytes in the trace, want %d", c.Ptr, live[c.Ptr], c.Size)
		}
	}
	checkSites(t, r, 5)
}

// The blocks of a process are its own after a fork: its child runs into no probe of its parent
// that records, and both go on.
func TestPathsOfChildren(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Start(t, exec.Command("sh", "-c", "echo ready >&3; read line <&4; for i in 1 2 3; do (true; true); done; "+os.Args[0]+" -test.list=^$ >/dev/null; exit 3"))
	child.Ready()
	r := attachTo(t, child.PID, withPaths)
	child.Close() // the shell reads the end of the file, and goes on
	if code := child.Wait(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	calls := ofKind(r.end(), trace.KindCall)
	if len(calls) == 0 {
		t.Error("no calls recorded")
	}
	for _, rec := range calls {
		if int(rec.PID) != child.PID {
			t.Fatalf("a call of process %d in the trace of %d", rec.PID, child.PID)
		}
	}
}

// Exceptions of new that fails unwind through functions without return probes.
func TestPathsOfFailingNew(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "bad_alloc")
	for _, args := range [][]string{nil, {"uncaught"}} {
		failingNewLives(t, program, "", args, way{"paths", withPaths})
	}
}

// Calls of realloc that are left by longjmp, whose entries and returns stay, do not disturb the calls
// of malloc that follow in their frames.
func TestPathsAfterLongjmp(t *testing.T) {
	testutil.NeedBPF(t)
	const n = 100
	report, records, s := leaving(t, testutil.Build, byPaths(func(*plan.Options) {}), "jump", n)
	compare(t, withoutFreesOf(records, leftBlocks(report)), report)
	checkLost(t, &s, map[order.Loss]int{order.LossMissedReturn: n})
	if s.Work.Compared < n || s.Work.Differ != 0 {
		t.Errorf("%d calls compared, %d differ; want at least %d and 0", s.Work.Compared, s.Work.Differ, n)
	}
}

// The probes come and go in the middle of calls of eight threads.
func TestPathsUnderLoad(t *testing.T) {
	testutil.NeedBPF(t)
	roundsUnderLoad(t, plan.WaysPaths)
}

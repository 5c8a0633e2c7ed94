package tracer

import (
	"errors"
	"io"
	"os"
	"runtime"
	"strconv"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/record"
)

// roundsEnv is the variable for the number of rounds of TestRoundsUnderLoad; without it
// there are a few.
const roundsEnv = "RTRACE_ROUNDS"

// enoughCalls is how many calls of the process a round waits for.
const enoughCalls = 1000

func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv(roundsEnv)
	if text == "" {
		return 4
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		t.Fatalf("%s=%s is not a number of rounds", roundsEnv, text)
	}
	return n
}

// After many rounds of attaching and detaching under full load, the process is
// undisturbed, and nothing of the tracer is left in it, in this process or in the kernel.
func TestRoundsUnderLoad(t *testing.T) {
	testutil.NeedBPF(t)
	roundsUnderLoad(t, plan.WaysReturns)
}

// roundsUnderLoad is TestRoundsUnderLoad for a way to record allocations.
func roundsUnderLoad(t *testing.T, ways plan.Ways) {
	t.Helper()
	child := testutil.Spawn(t, testutil.Build(t, "churn"), "8")
	child.Ready()
	child.Go()
	oneRound(t, child.PID, ways) // makes what is made only once
	before := ownUse(t)
	recorded, lost := uint64(0), uint64(0)
	n := rounds(t)
	for i := range n {
		s := oneRound(t, child.PID, ways)
		recorded += s.Calls
		lost += s.Losses()
		if t.Failed() {
			t.Fatalf("in round %d of %d", i, n)
		}
	}
	after := ownUse(t)
	t.Logf("%d rounds, %d calls, %d lost; before %+v, after %+v", n, recorded, lost, before, after)
	if after.files != before.files || after.goroutines != before.goroutines {
		t.Errorf("%d files and %d goroutines, %d and %d before", after.files, after.goroutines, before.files, before.goroutines)
	}
	if after.heap > before.heap+(8<<20) {
		t.Errorf("%d bytes of heap, %d before", after.heap, before.heap)
	}
	child.Go()
	report := child.Report()
	if report.Wrong != 0 || report.Ops["alloc"] != report.Ops["free"] || report.Ops["none"] != 0 {
		t.Errorf("the program has %d wrong blocks and made %v", report.Wrong, report.Ops)
	}
	if made := report.Ops["alloc"] + report.Ops["free"] + report.Ops["move"]; made < recorded+lost {
		t.Errorf("%d calls recorded or lost, %d made", recorded+lost, made)
	}
}

// oneRound traces a process for some calls and checks that nothing is left afterwards.
func oneRound(t *testing.T, pid int, ways plan.Ways) record.Stats {
	t.Helper()
	p, err := plan.New(plan.Options{PID: pid, Depth: plan.DefaultDepth, HeapGrowth: true, Ways: ways})
	if err != nil {
		t.Fatal(err)
	}
	tracer, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	made := testutil.KernelObjectsOf(t, os.Getpid())
	if len(made.Programs) == 0 || len(made.Maps) == 0 || (tracer.plan.Mechanisms.Attach == host.MechanismMulti && len(made.Links) == 0) {
		t.Fatalf("the tracer has nothing in the kernel: %+v", made)
	}
	if code := testutil.CodeOf(t, pid); len(code.Changed) == 0 || code.Uprobes > 1 {
		t.Errorf("no probe is visible: %+v", code)
	}
	over := testutil.Unstuck(t, pid)
	defer over()
	var rec trace.Record
	for calls := 0; ; {
		err := tracer.ReadRecord(&rec)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if rec.Kind == trace.KindCall {
			if calls++; calls == enoughCalls {
				tracer.Stop()
			}
		}
	}
	s := tracer.Stats()
	if s.Calls < enoughCalls || (s.Replaced > 0 && s.Losses() == 0) {
		t.Errorf("%d calls recorded, %d addresses live twice, lost %v", s.Calls, s.Replaced, s.Lost)
	}
	if err := tracer.Close(); err != nil {
		t.Error(err)
	}
	testutil.CodeOf(t, pid).Original(t)
	made.Gone(t)
	return s
}

// use is what this process uses.
type use struct {
	files, goroutines int
	heap              uint64
}

func ownUse(t *testing.T) use {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var memory runtime.MemStats
	runtime.GC()
	runtime.GC() // frees what finalizers held
	runtime.ReadMemStats(&memory)
	return use{len(files), runtime.NumGoroutine(), memory.HeapAlloc}
}

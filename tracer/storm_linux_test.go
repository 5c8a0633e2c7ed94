package tracer

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
)

// fullyPreemptible reports whether this kernel preempts its own code, and thus the BPF
// programs. This is chosen at boot (preempt=full), and only debugfs shows the choice.
func fullyPreemptible(t *testing.T) bool {
	t.Helper()
	now, err := os.ReadFile("/sys/kernel/debug/sched/preempt")
	if err != nil {
		t.Logf("whether the kernel is preemptible is not known: %v", err)
	}
	return strings.Contains(string(now), "(full)")
}

// Many more threads than CPUs allocate at once below different stacks. Each call is in
// the trace, in the order of its thread, with the stack that the program found itself. On
// a kernel that preempts its own code, the BPF programs preempt each other all the time;
// state kept per CPU would then be another thread's. A virtual machine is booted with
// such a kernel for this test (vmtest/README.md, "Cases").
func TestStormOfThreads(t *testing.T) {
	testutil.NeedBPF(t)
	full := fullyPreemptible(t)
	if want := testutil.VMCase() == "preempt"; want && !full {
		t.Fatal("this kernel was to be booted with preempt=full, and is not preemptible")
	}
	program := testutil.Build(t, "storm", testutil.OmitFramePointers)
	threads := max(12, 4*runtime.NumCPU())
	for _, v := range []struct {
		name   string
		change func(o *plan.Options)
	}{
		{"best", nil},
		{"no-stack-cache", func(o *plan.Options) { o.Testing.NoStackCache = true }},
		{"hash", func(o *plan.Options) { o.State = plan.StateHash }},
		{"no-storage", func(o *plan.Options) { o.State, o.Testing.NoStorage = plan.StateTask, true }},
		{"perf-events", func(o *plan.Options) { o.Mechanism = host.MechanismPerf }},
		{"perf-buffer", func(o *plan.Options) { o.Buffer = plan.BufferPerf }},
		{"perf-buffer-hash", func(o *plan.Options) { o.Buffer, o.State = plan.BufferPerf, plan.StateHash }},
		{"oldest", oldest},
	} {
		t.Run(v.name, func(t *testing.T) {
			r := tracedStacks(t, byTables(plan.UnwindEH, func(o *plan.Options) {
				o.BacktraceAll = true
				if v.change != nil {
					v.change(o)
				}
			}), program, "100", strconv.Itoa(threads))
			n := r.exact(ownCalls)
			if want := 100 * threads * 12 * 2; n != want || len(r.log) != want {
				t.Errorf("%d stacks compared, %d calls logged, want %d of each", n, len(r.log), want)
			}
			s := r.tracer.Stats()
			if s.Stacks[trace.StackComplete] < uint64(n) {
				t.Errorf("the summary counts %d complete stacks of %d", s.Stacks[trace.StackComplete], n)
			}
			t.Logf("%d stacks, %d of them different; preemptible: %v", n, s.DistinctStacks, full)
		})
	}
}

package main

import (
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// A process that ends or executes another program in the middle of a window has all calls up to
// then in the trace. With a budget of 100 %, windows of weight 1 follow each other without a
// pause, because the calls cost little of a second. So the sums are exact. On a busy machine probes
// may cost so much that a window ends early; the sums are then bounds.
func TestBudgetEndsInAWindow(t *testing.T) {
	testutil.NeedBPF(t)
	phases := testutil.Build(t, "phases")
	for name, test := range map[string]struct {
		program string
		args    []string
		gates   int // after the first
		mallocs float64
	}{
		"exit": {phases, []string{"1", "300"}, 1, 300},
		"exec": {testutil.Build(t, "exec"), []string{"50", phases, "1", "70"}, 2, 120},
	} {
		t.Run(name, func(t *testing.T) {
			child := testutil.Spawn(t, test.program, test.args...)
			child.Ready()
			path := filepath.Join(t.TempDir(), "trace")
			r := start(t, child, "--budget", "100%", "-o", path)
			for range test.gates {
				child.Go()
				child.Ready()
			}
			child.Go()
			child.Succeed()
			r.ends(cli.OK)
			all, cost := estimated(t, path)
			e := all["malloc"]
			whole := !slices.ContainsFunc(load(t, path), func(r *trace.Record) bool { return r.Kind == trace.KindWindow && r.Window.Weight != 1 })
			switch {
			case whole && (e.Value != test.mallocs || e.Low != test.mallocs || e.Error != 0):
				t.Errorf("%v mallocs, estimated %+v", test.mallocs, e)
			case e.Low > test.mallocs, !e.AtLeast && e.High < test.mallocs:
				t.Errorf("%v mallocs, estimated %+v from windows that end early", test.mallocs, e)
			}
			if cost == nil {
				t.Error("no costs")
			}
		})
	}
}

// Threads that allocate all the time while probes come and go are not harmed: their blocks keep
// their contents. The process ends with no probe left, and the trace is whole.
func TestBudgetWithThreads(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.Extra(t, "it waits for windows, which come when the budget allows")
	child := testutil.Spawn(t, testutil.Build(t, "churn", "-pthread"), "4")
	child.Ready()
	path := filepath.Join(t.TempDir(), "trace")
	r := start(t, child, "--budget", "50%", "-o", path)
	child.Go()
	defer testutil.Unstuck(t, child.PID)()
	for _, out := range []bool{true, false, true} { // the first window closes, another one opens and closes
		for (len(testutil.CodeOf(t, child.PID).Changed) == 0) != out {
		}
	}
	r.Signal(unix.SIGINT)
	r.ends(cli.OK)
	if changed := testutil.CodeOf(t, child.PID).Changed; len(changed) > 0 {
		t.Errorf("probes are left: %v", changed)
	}
	child.Close()
	child.Succeed()
	all, cost := estimated(t, path)
	if len(all) == 0 || cost == nil || cost.Added <= 0 {
		t.Errorf("%+v, cost %+v", all, cost)
	}
}

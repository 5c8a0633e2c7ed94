package tracer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/plan"
)

// A program in which news fail, in every form and place, prints and returns the same with
// and without the tracer, and no call that threw is missing in the trace.
func TestFailingNewLives(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "bad_alloc")
	for _, path := range append([]string{""}, allocatorLibraries(t)...) {
		if strings.Contains(path, "mimalloc") {
			continue // its new ends the program instead of throwing
		}
		for _, args := range [][]string{nil, {"uncaught"}} {
			all := []way{{"best", func(*plan.Options) {}}, {"oldest", oldest}}
			if path != "" {
				all = all[:1]
			}
			for _, way := range all {
				t.Run(strings.Join(append([]string{filepath.Base(path), way.name}, args...), "-"), func(t *testing.T) {
					failingNewLives(t, program, path, args, way)
				})
			}
		}
	}
}

func failingNewLives(t *testing.T, program, path string, args []string, way way) {
	start := func() *testutil.Child {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "LD_PRELOAD="+path)
		child := testutil.Start(t, cmd)
		child.Ready()
		return child
	}
	plain := start()
	plain.Go()
	child := start()
	r := attachTo(t, child.PID, func(o *plan.Options) {
		way.set(o)
		o.Operators = plan.OperatorsAll
	})
	child.Go()
	if got, want := child.Wait(), plain.Wait(); got != want {
		t.Errorf("exit code %d, without the tracer %d", got, want)
	}
	if got, want := string(child.Output()), string(plain.Output()); got != want || got == "" {
		t.Errorf("output\n%s\nwithout the tracer\n%s", got, want)
	}
	r.end()
	r.whole()
}

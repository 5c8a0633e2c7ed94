package tracer

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/order"
)

// everyWayEnv selects every way for each program of TestHarmless. Otherwise each program
// is traced in the best way and in one of the others, in turn, because removing one perf
// event per probe takes seconds.
const everyWayEnv = "RTRACE_EVERY_WAY"

// harmless is a program whose output and exit code show whether it was disturbed.
type harmless struct {
	name, how, rounds string
}

var harmlessPrograms = func() (all []harmless) {
	for _, how := range []string{"badalloc", "handler", "exceptions", "backtrace", "fibers", "altstack", "jumps", "signals", "cancel"} {
		all = append(all, harmless{"harmless", how, "200"})
	}
	for _, how := range []string{"exit", "main", "vfork", "fork", "spawn", "idle", "limits"} {
		all = append(all, harmless{"harmless_ends", how, "20"})
	}
	return all
}()

// leaves is the program that leaves calls by jumps; those calls are lost.
const leaves = "jumps"

// Programs that a tracer could disturb behave as without tracing: same output, same exit
// code. Other tests check that the trace has their calls.
func TestHarmless(t *testing.T) {
	testutil.NeedBPF(t)
	turn := byTurn
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		for i, p := range harmlessPrograms {
			t.Run(p.how, func(t *testing.T) {
				program := build(t, p.name)
				undisturbed(t, turn(t, i), p.how == leaves, func() *exec.Cmd { return exec.Command(program, p.how, p.rounds) })
			})
		}
		turn = func(t *testing.T, _ int) []way { return ways(t)[:1] } // one way suffices for the second width
	})
	t.Run("cgo", func(t *testing.T) {
		program := testutil.BuildCgo(t, "cgo")
		undisturbed(t, byTurn(t, 3), false, func() *exec.Cmd { return exec.Command(program, "16") })
	})
}

// byTurn returns the ways in which program i is traced.
func byTurn(t *testing.T, i int) []way {
	t.Helper()
	all := ways(t)
	if os.Getenv(everyWayEnv) != "" {
		return all
	}
	if !testutil.Sweep(t) {
		return all[i%len(all):][:1]
	}
	return []way{all[0], all[1+i%(len(all)-1)]}
}

// undisturbed runs a program alone and traced, and compares the runs.
func undisturbed(t *testing.T, all []way, missed bool, command func() *exec.Cmd) {
	t.Helper()
	alone := testutil.Start(t, command())
	alone.Ready()
	alone.Go()
	code, want := alone.Wait(), alone.Output()
	if len(want) == 0 || code > 100 {
		t.Fatalf("alone it prints %q and ends with %d: %s", want, code, alone.Stderr())
	}
	for _, way := range all {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel() // the tests mostly wait
			child := testutil.Start(t, command())
			child.Ready()
			r := attachTo(t, child.PID, way.set)
			child.Go()
			if got := child.Wait(); got != code {
				t.Errorf("exit code %d, alone %d: %s", got, code, child.Stderr())
			}
			if got := child.Output(); !bytes.Equal(got, want) {
				t.Errorf("it prints %q, alone %q", got, want)
			}
			if n := len(ofKind(r.end(), trace.KindCall)); n == 0 {
				t.Error("no calls in the trace")
			}
			s := r.tracer.Stats()
			if missed != (s.Lost[order.LossMissedReturn] > 0) {
				t.Errorf("%d × %s", s.Lost[order.LossMissedReturn], order.LossMissedReturn)
			}
			s.Lost[order.LossMissedReturn] = 0
			if r.tracer.plan.Mechanisms.Attach == host.MechanismPerf {
				s.Lost[order.LossProbesMoved] = 0 // the main thread may end before the others do
			}
			if n := s.Losses(); n > 0 {
				t.Errorf("lost: %v", s.Lost)
			}
		})
	}
}

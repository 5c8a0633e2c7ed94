package tracer

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
)

// openedSideband returns the sideband of a process alone, without a collector.
func openedSideband(t testing.TB, pid int, way plan.Sideband) *order.Sideband {
	t.Helper()
	cpus, err := host.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	s, err := order.OpenSideband(&plan.Plan{Options: plan.Options{PID: pid, Sideband: way}, Target: &process.Target{PID: pid}}, cpus)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// subscribed is openedSideband, closed at the end of the test.
func subscribed(t *testing.T, pid int, way plan.Sideband) *order.Sideband {
	t.Helper()
	s := openedSideband(t, pid, way)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// sidebandBytes returns how full the buffers are.
func sidebandBytes(s *order.Sideband) (n float64) {
	for _, r := range s.Rings {
		r.Begin()
		n += r.Used()
	}
	return n
}

// Mappings of other processes fill the buffers only with a machine-wide subscription.
func TestOthersFillNoBuffers(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "mapcode")
	for name, test := range map[string]struct {
		way  plan.Sideband
		some bool
	}{"task": {plan.SidebandTask, false}, "machine": {plan.SidebandMachine, true}} {
		t.Run(name, func(t *testing.T) {
			traced, neighbour := testutil.Spawn(t, program, "100"), testutil.Spawn(t, program, "1000")
			traced.Ready()
			neighbour.Ready()
			s := subscribed(t, traced.PID, test.way)
			neighbour.Go()
			neighbour.Ready()
			if got := sidebandBytes(s); (got > 0) != test.some {
				t.Errorf("%v of the buffers is full", got)
			}
			s.Poll(nil)
			s.Dropped = false
			traced.Go()
			traced.Ready()
			maps := 0
			for _, x := range s.Poll(nil) {
				if x.Kind == order.SideMap && x.PID == uint32(traced.PID) {
					maps++
				}
			}
			// With the records of the whole machine, a busy one can fill the buffers meanwhile.
			if maps != 100 && !(test.some && s.Dropped) {
				t.Errorf("%d mappings of the process, want 100", maps)
			}
		})
	}
}

// A process with more threads than may have their own events is followed with events of
// the whole machine.
func TestSubscriptionOfManyThreads(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "alloc"), "8", "1")
	child.Ready()
	s := subscribed(t, child.PID, plan.SidebandTask)
	if s.Limit = 8; s.Subscribe(plan.SidebandTask) == nil {
		t.Error("no error with more threads than the limit allows")
	}
	if !s.PerTask() {
		t.Error("the earlier subscription is gone")
	}
	if err := s.Subscribe(plan.SidebandAuto); err != nil || s.PerTask() {
		t.Errorf("%v, single threads: %v; want the whole machine", err, s.PerTask())
	}
	s.Way = plan.SidebandAuto
	if s.Narrow(); s.PerTask() {
		t.Error("Narrow ignored the limit")
	}
	s.Way, s.Limit = plan.SidebandAuto, 100
	if s.Narrow(); !s.PerTask() {
		t.Error("the buffers still get records of other processes")
	}
}

// Records come once, even of threads that are subscribed to twice.
func TestSubscribedTwice(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "mapcode"), "50")
	child.Ready()
	s := subscribed(t, child.PID, plan.SidebandTask)
	again, err := order.SubscribeThreads(child.PID, s.CPUs, s.Rings, s.Limit)
	if err != nil {
		t.Fatal(err)
	}
	child.Go()
	child.Ready()
	if got := len(s.Poll(nil)); got != 50 {
		t.Errorf("%d records, want 50", got)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// The kernel closes the events of a process that executes a set-user-ID program. The
// trace continues with the records of that program, and of those that follow.
func TestExecOfSetUID(t *testing.T) {
	testutil.NeedBPF(t)
	for name, way := range map[string]plan.Sideband{"task": plan.SidebandTask, "machine": plan.SidebandMachine} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			plain, program := filepath.Join(dir, "plain"), filepath.Join(dir, "setuid")
			testutil.CopyFile(t, testutil.Build(t, "exec"), plain)
			testutil.CopyFile(t, plain, program)
			const nobody = 65534
			err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755), os.Chmod(plain, 0o755),
				os.Chown(program, nobody, 0), os.Chmod(program, 0o755|os.ModeSetuid))
			if err != nil {
				t.Fatal(err)
			}
			child := testutil.Spawn(t, plain, "10", program, "20", plain, "30", program, "40", "/bin/true")
			child.Ready()
			seen := make(chan struct{}, 100)
			r := watched(t, child.PID, func(o *plan.Options) { o.Sideband = way }, func(_ *recording, rec *trace.Record) {
				if rec.Kind == trace.KindMapping && (rec.Mapping.Path == program || rec.Mapping.Path == plain) {
					seen <- struct{}{}
				}
			})
			<-seen
			for range 3 {
				child.Go()
				child.Ready()
				<-seen // a program that ends before the tracer looks would stay unknown
			}
			child.Go()
			child.Succeed()
			made, mapped, execs := map[string]int{}, map[string]bool{}, 0
			for _, rec := range r.end() {
				at := strconv.Itoa(execs)
				switch {
				case rec.Kind == trace.KindExec:
					execs++
				case rec.Kind == trace.KindMapping && (rec.Mapping.Path == program || rec.Mapping.Path == plain):
					mapped[at] = true
				case rec.Kind == trace.KindCall && rec.Call.Function == "malloc" && rec.Call.Size == 100:
					made[at]++
					if !mapped[at] {
						t.Errorf("call %d comes before the mapping of its program", rec.Call.Seq)
					}
				}
			}
			if execs != 4 || made["0"] != 10 || made["1"] != 20 || made["2"] != 30 || made["3"] != 40 {
				t.Errorf("%d execs, calls by the execs before: %v", execs, made)
			}
			if r.tracer.Stats().LeftBehind {
				t.Error("the process counts as one without probes after its main thread")
			}
			r.whole()
		})
	}
}

package tracer

import (
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/governor"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
)

// A budget pays for attaching and detaching probes, and not for the start of the process that does it,
// which takes ten times as long.
func TestMoveTime(t *testing.T) {
	testutil.NeedBPF(t)
	for _, mechanism := range []host.Mechanism{host.MechanismMulti, host.MechanismPerf} {
		t.Run(mechanism.String(), func(t *testing.T) {
			child := testutil.Spawn(t, testutil.Build(t, "phases"), "1", "10")
			child.Ready()
			o := plan.Options{PID: child.PID, Budget: 1, NoLive: true, Mechanism: mechanism}
			p, err := plan.New(o)
			needWay(t, &o, err)
			if err != nil {
				t.Fatal(err)
			}
			tracer, err := Open(p)
			if err != nil {
				t.Fatal(err)
			}
			r := &recording{t: t, tracer: tracer, done: make(chan error, 1)}
			go func() { r.done <- r.read() }()
			pid, _ := tracer.kernel.probes.Keeper()
			attached := tracer.kernel.probes.MoveTime()
			all, err := governor.CPUTime(pid)
			if err != nil || attached <= 0 || attached >= all {
				t.Errorf("attaching took %v of the %v that the keeper has used: %v", attached, all, err)
			}
			child.Go()
			child.Ready()
			tracer.Stop()
			if err := <-r.done; err != nil {
				t.Error(err)
			}
			if err := tracer.kernel.probes.Detach(); err != nil {
				t.Error(err)
			}
			if both := tracer.kernel.probes.MoveTime(); both <= attached {
				t.Errorf("attaching and detaching took %v, attaching %v", both, attached)
			}
			if err := tracer.Close(); err != nil {
				t.Error(err)
			}
			child.Go()
			child.Succeed()
		})
	}
}

package tracer

import (
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// Idle is called after all available records were returned, while the process waits.
func TestIdle(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "phases"), "1", "25")
	child.Ready()
	calls, idle := 0, make(chan bool, 1) // calls belongs to the reading goroutine
	r := watched(t, child.PID, func(o *plan.Options) {
		o.Idle = func() {
			if calls == 49 {
				select {
				case idle <- true:
				default:
				}
			}
		}
	}, func(_ *recording, rec *trace.Record) {
		if rec.Kind == trace.KindCall {
			calls++
		}
	})
	child.Go()
	select {
	case <-idle:
	case <-child.Exited():
		t.Error("the program has ended: it should be waiting")
	}
	child.Go()
	compare(t, r.end(), child.Report())
}

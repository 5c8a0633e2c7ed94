package tracer

import (
	"testing"

	"rtrace-bpf/internal/proc"
	"rtrace-bpf/internal/testutil"
)

// A process that ends has no thread that goes on when its main thread has ended,
// however closely it is looked at.
func TestNoCarrierAtTheEnd(t *testing.T) {
	program := testutil.Build(t, "alloc")
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	for range rounds {
		child := testutil.Spawn(t, program, "8", "1")
		child.Ready()
		dying := &target{pid: child.PID}
		child.Go()
		for {
			tid, settled := dying.carrier()
			if settled && tid != 0 && tid != child.PID {
				stat, err := proc.ReadStat(tid)
				t.Fatalf("thread %d looked alive, and now: %+v, %v", tid, stat, err)
			}
			if _, err := proc.ReadStatus(child.PID); err != nil {
				break // it has been waited for
			}
		}
		child.Close()
		child.Succeed()
	}
}

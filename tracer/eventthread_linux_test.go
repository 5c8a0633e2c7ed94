package tracer

import (
	"testing"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/process"
)

// A process that ends has no thread that goes on when its main thread has ended,
// however closely it is looked at.
func TestNoCarrierAtTheEnd(t *testing.T) {
	program := testutil.Build(t, "alloc")
	rounds := 200
	if !testutil.Sweep(t) {
		rounds = 20
	}
	looked := 0
	for range rounds {
		child := testutil.Spawn(t, program, "8", "1")
		child.Ready()
		dying := &process.Target{PID: child.PID}
		child.Go()
		for {
			tid, settled := dying.Carrier()
			if settled && tid != 0 && tid != child.PID {
				// Between two instructions of the kernel a thread that is being killed has
				// neither the signal nor the flag, and a processor may stop there.
				stat, err := proc.ReadStat(tid)
				t.Logf("thread %d looked alive, and now: %+v, %v", tid, stat, err)
				looked++
				break
			}
			if _, err := proc.ReadStatus(child.PID); err != nil {
				break // it has been waited for
			}
		}
		child.Close()
		child.Succeed()
	}
	if looked > 1+rounds/100 {
		t.Errorf("a thread that was ending looked alive in %d of %d rounds", looked, rounds)
	}
}

// A main thread that is about to end carries nothing any more, though its state does not
// say so yet: the kernel has told its end by then, which is told once.
func TestMainThreadIsNoCarrierAtItsEnd(t *testing.T) {
	program := leaderlessProgram(t)
	rounds := 200
	if !testutil.Sweep(t) {
		rounds = 20
	}
	for range rounds {
		child := testutil.Spawn(t, program, "1")
		child.Ready()
		traced := &process.Target{PID: child.PID}
		child.Go()
		for {
			before, err := proc.ReadStat(child.PID)
			if err != nil {
				t.Fatal(err)
			}
			tid, settled := traced.Carrier()
			if tid == child.PID && settled && before.Exiting() {
				t.Fatal("the main thread was ending, and was taken to go on")
			}
			if tid != child.PID && settled {
				break
			}
		}
		child.Close()
		child.Succeed()
	}
}

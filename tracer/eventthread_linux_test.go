package tracer

import (
	"testing"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/process"
)

// When a process ends, no thread is taken to continue after the main thread has ended,
// however closely it is checked.
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
				// Between two instructions of the kernel, a thread that is being killed
				// has neither the signal nor the flag, and a processor may stop there.
				stat, err := proc.ReadStat(tid)
				t.Logf("thread %d looked alive, and now: %+v, %v", tid, stat, err)
				looked++
				break
			}
			if _, err := proc.ReadStatus(child.PID); err != nil {
				break // its parent has waited for it
			}
		}
		child.Close()
		child.Succeed()
	}
	if looked > 1+rounds/100 {
		t.Errorf("a thread that was ending looked alive in %d of %d rounds", looked, rounds)
	}
}

// A main thread that is about to end no longer counts as a carrier, although its state
// does not show it yet: the kernel has written the record of its end by then, and writes
// it once.
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
				t.Fatal("the main thread was ending, but counted as one that continues")
			}
			if tid != child.PID && settled {
				break
			}
		}
		child.Close()
		child.Succeed()
	}
}

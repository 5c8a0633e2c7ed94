package host

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/testutil"
)

// Every thread gets the priority, including those that start meanwhile. Work in a thread
// of ordinary priority would have to wait for a busy target.
func TestEveryThreadIsPrioritized(t *testing.T) {
	if err := Prioritize(); err != nil {
		t.Skipf("SKIPPED: without the right to raise priorities: %v", err)
	}
	defer func() {
		if err := Prioritize(); err != nil {
			t.Error(err)
		}
	}()
	for i := range 100 {
		want := []int{0, priority}[i%2]
		made := make(chan struct{})
		go func() {
			defer close(made)
			for range 20 {
				startThread()
			}
		}()
		if err := setPriority(want); err != nil {
			t.Fatal(err)
		}
		<-made
		for tid, nice := range niceValues(t) {
			if nice != want {
				t.Fatalf("round %d: thread %d has %d, want %d", i, tid, nice, want)
			}
		}
	}
}

// startThread makes the runtime start threads: a locked thread ends with its goroutine.
func startThread() {
	var held [2]chan struct{}
	for i := range held {
		held[i] = make(chan struct{})
		go func() {
			runtime.LockOSThread()
			held[i] <- struct{}{}
		}()
	}
	for i := range held {
		<-held[i]
	}
}

// niceValues returns the nice values of this process's threads, by thread ID.
func niceValues(t *testing.T) map[int]int {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	all := map[int]int{}
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := unix.Getpriority(unix.PRIO_PROCESS, tid); err == nil {
			all[tid] = 20 - raw
		}
	}
	return all
}

// Programs that tests start do not inherit the tracer's priority.
func TestChildrenAreOrdinary(t *testing.T) {
	child := testutil.Spawn(t, testutil.Build(t, "loop"), "2", "1")
	child.Ready()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", child.PID))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := unix.Getpriority(unix.PRIO_PROCESS, tid); err != nil || 20-raw != 0 {
			t.Errorf("thread %d has %d: %v", tid, 20-raw, err)
		}
	}
	for tid, nice := range niceValues(t) {
		if wanted, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err != nil || nice != 20-wanted {
			t.Errorf("thread %d of the test has %d, another %d: %v", tid, nice, 20-wanted, err)
		}
	}
	child.Go()
	child.Succeed()
}

package main

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// TestWaitKilledAtRandom ends the tracer at any moment and in any way: while it waits,
// while it holds the process, or later. The process must run to its end and leave its whole
// report. The parent of the process is testutil, which would wait forever for a process
// that stays stopped.
func TestWaitKilledAtRandom(t *testing.T) {
	path, comm := renamed(t, testutil.Build(t, "launch"), "")
	random := rand.New(rand.NewPCG(6, 3))
	began := time.Now()
	r := waitFor(t, comm)
	waiting := time.Now()
	testutil.Spawn(t, path).Succeed()
	r.ends(cli.OK)
	tracing := time.Since(waiting)
	t.Logf("%v until it waits, %v until the trace is there", waiting.Sub(began), tracing)
	ends := []syscall.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM, syscall.SIGTSTP}
	before := 0
	for i := range kills(t, 10) {
		sig := ends[i%len(ends)]
		r := waitFor(t, comm, "-q")
		child := testutil.Spawn(t, path)
		within := tracing
		if i%2 == 0 { // around the start of the process
			within = 2 * time.Millisecond
		}
		moment(random, within)
		if err := syscall.Kill(r.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
		report := child.Report()
		if len(report.Done()) < 9 {
			t.Errorf("the program reports %d calls", len(report.Done()))
		}
		if sig == syscall.SIGTSTP {
			_ = syscall.Kill(r.PID, syscall.SIGCONT)
			_ = syscall.Kill(r.PID, syscall.SIGINT) // it may still wait
		}
		if r.Wait() == 128+int(syscall.SIGKILL) {
			before++
		}
		// The next tracer must find nothing in its way.
		next := waitFor(t, comm, "-q", "--dry-run")
		testutil.Spawn(t, path).Succeed()
		next.ends(cli.OK)
	}
	t.Logf("%d were killed before their end", before)
}

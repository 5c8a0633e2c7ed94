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

// However and whenever the tracer ends, while it waits, while the process is held or
// behind that: the process runs to its end and leaves its whole report. Its parent
// here is that of testutil, which would wait for ever for one that stays stopped.
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
		if i%2 == 0 { // around the match
			within = 2 * time.Millisecond
		}
		moment(random, within)
		if err := syscall.Kill(r.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
		report := child.Report()
		if len(report.Done()) < 9 {
			t.Errorf("it says that it made %d calls", len(report.Done()))
		}
		if sig == syscall.SIGTSTP {
			_ = syscall.Kill(r.PID, syscall.SIGCONT)
			_ = syscall.Kill(r.PID, syscall.SIGINT) // it may be waiting still
		}
		if r.Wait() == 128+int(syscall.SIGKILL) {
			before++
		}
		// The next one finds nothing in its way.
		next := waitFor(t, comm, "-q", "--dry-run")
		testutil.Spawn(t, path).Succeed()
		next.ends(cli.OK)
	}
	t.Logf("%d were killed before their end", before)
}

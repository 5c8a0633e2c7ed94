package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// launchesEnv names the number of commands that TestLaunchMany starts. The default is 20,
// half of that in a short run; `make soak-rounds` sets 1,000.
const launchesEnv = "RTRACE_LAUNCHES"

// hung is how long a launch may take before it counts as hanging, on any machine.
const hung = 20 * time.Minute

// launchOnce runs a short command to its end. If it hangs, SIGABRT ends the tracer, which
// prints its stacks.
func launchOnce(t *testing.T, argv ...string) *launching {
	t.Helper()
	l := launchCommand(t, []string{"-q"}, argv...)
	defer time.AfterFunc(hung, func() { _ = syscall.Kill(l.PID, syscall.SIGABRT) }).Stop()
	l.ends(0)
	return l
}

// TestLaunchMany runs many short commands in turn and checks that none hangs or is missed.
// In every round it traces /bin/true up to its end, and in every second round it also
// compares the trace of a program with the calls that the program logs.
func TestLaunchMany(t *testing.T) {
	program := testutil.Build(t, "launch")
	for i := range rounds(t, launchesEnv, 20) {
		l := launchOnce(t, "/bin/true")
		ended := false
		for _, rec := range l.records() {
			ended = ended || rec.Kind == trace.KindExit && rec.Exit.Process
			if rec.Kind == trace.KindLost {
				t.Errorf("%d lost: %s", rec.Lost.Count, rec.Lost.Reason)
			}
		}
		if !ended {
			t.Error("its end is not in the trace")
		}
		removeTraces(t, l)
		if i%2 == 0 {
			l := launchOnce(t, program)
			equalCalls(t, l.records(), l.Report(), 0)
			removeTraces(t, l)
		}
		if t.Failed() {
			t.Fatalf("in round %d", i)
		}
	}
}

// removeTraces removes the traces of a round, so that a thousand rounds do not fill the
// disk.
func removeTraces(t *testing.T, l *launching) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(l.dir, "rtrace-raw-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

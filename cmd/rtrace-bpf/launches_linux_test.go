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

// launchesEnv is how many commands TestLaunchMany starts; some by default, half as many
// in a short run, and 1,000 in `make soak-rounds`.
const launchesEnv = "RTRACE_LAUNCHES"

// hung is how long a launch may take before it counts as hanging, on any machine.
const hung = 20 * time.Minute

// launchOnce runs a short command to its end. One that hangs is ended with the stacks of
// the tracer.
func launchOnce(t *testing.T, argv ...string) *launching {
	t.Helper()
	l := launchCommand(t, []string{"-q"}, argv...)
	defer time.AfterFunc(hung, func() { _ = syscall.Kill(l.PID, syscall.SIGABRT) }).Stop()
	l.ends(0)
	return l
}

// Many short commands, one after the other: none hangs, none is missed. What the
// smallest one does, which allocates nothing, is to end; every second round one that
// logs its calls is compared with its trace.
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

// removeTraces keeps a thousand rounds from filling the disk before the test ends.
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

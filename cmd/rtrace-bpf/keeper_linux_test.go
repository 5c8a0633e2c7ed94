package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/testutil"
)

// keeperOf returns the keeper of a recording.
func keeperOf(t *testing.T, r *running) int {
	t.Helper()
	all, err := proc.Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range all {
		stat, err := proc.ReadStat(pid)
		if err == nil && stat.PPID == r.PID && stat.Name == "rtrace-keeper" {
			return pid
		}
	}
	t.Fatalf("process %d has no keeper", r.PID)
	return 0
}

// TestKeeperIsKilled checks that rtrace-bpf ends at once when its keeper is killed,
// although the process goes on, and that the trace is whole up to there.
func TestKeeperIsKilled(t *testing.T) {
	for name, args := range map[string][]string{"one": nil, "followed": {"-f"}} {
		t.Run(name, func(t *testing.T) {
			child := waiting(t, "phases", "2", "10")
			r := start(t, child, args...)
			child.Go()
			child.Ready()
			if err := unix.Kill(keeperOf(t, r), unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			r.ends(cli.Failed)
			r.says("rtrace-keeper, which holds the probes, has ended")
			if n := count(loadEnded(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0", child.PID))), "malloc"); n != 10 {
				t.Errorf("%d calls of malloc in the trace, want 10", n)
			}
			child.Go()
			child.Ready()
			child.Go()
			child.Succeed()
		})
	}
}

// TestKeeperIsStopped checks that a stopped keeper is woken to remove the probes at the
// end, even in a pause of the recording, which waits for the keeper.
func TestKeeperIsStopped(t *testing.T) {
	for name, args := range map[string][]string{"plain": nil, "--max-rate": {"--max-rate", "1"}, "followed": {"-f"}} {
		t.Run(name, func(t *testing.T) {
			child := waiting(t, "phases", "2", "1000")
			r := start(t, child, args...)
			if err := unix.Kill(keeperOf(t, r), unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			child.Go()
			child.Ready()
			r.Signal(unix.SIGINT)
			if code := r.Wait(); code != int(cli.OK) && (name != "--max-rate" || code != int(cli.Incomplete)) { // if the pause had begun
				t.Errorf("exit code %d: %s", code, r.Stderr())
			}
			testutil.BecomesOriginal(t, child.PID)
			child.Go()
			child.Ready()
			child.Go()
			child.Succeed()
		})
	}
}

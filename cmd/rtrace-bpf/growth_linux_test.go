package main

import (
	"regexp"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/resident"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// rssOf returns the resident memory of a process, as smaps_rollup has it.
func rssOf(t *testing.T, pid int) uint64 {
	t.Helper()
	total, err := resident.Total(pid)
	if err != nil {
		t.Fatal(err)
	}
	return total.Resident
}

// residentBytes returns the bytes that a trace has as resident at its end. The test fails unless
// the trace has blocks of resident memory alone, and none twice.
func residentBytes(t *testing.T, records []*trace.Record) (sum uint64) {
	t.Helper()
	live := map[uint64]uint64{}
	for _, r := range records {
		switch {
		case r.Kind == trace.KindResource && r.Resource.Type != "resident":
			t.Errorf("the trace has the resource %s", r.Resource.Type)
		case r.Kind != trace.KindCall:
		case r.Call.Op == trace.OpFree:
			if live[r.Call.ID] == 0 {
				t.Errorf("the block at %#x goes, and was not there", r.Call.ID)
			}
			delete(live, r.Call.ID)
		default:
			if live[r.Call.ID] != 0 {
				t.Errorf("the block at %#x comes twice", r.Call.ID)
			}
			live[r.Call.ID] = r.Call.Size
		}
	}
	for _, size := range live {
		sum += size
	}
	return sum
}

// The trace of -e growth has what RSS grew by, and the summary prints the sum.
func TestGrowth(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "faults"))
	child.Ready()
	before := rssOf(t, child.PID)
	r := start(t, child, "-e", "growth")
	child.Go()
	child.Ready()
	after := rssOf(t, child.PID)
	r.Signal(syscall.SIGINT)
	r.ends(cli.OK)
	child.Go()
	child.Succeed()
	sum := residentBytes(t, r.trace())
	// A few pages of the program were there before, and are gone, or have a probe.
	if growth := after - before; sum+1<<16 < growth || sum > growth+1<<16 {
		t.Errorf("the trace has %d bytes, RSS grew by %d", sum, growth)
	}
	if !regexp.MustCompile(`growth: \+\S+ \S+ = \S+ \S+ attributed \+ \S+ \S+ unattributed`).Match(r.Stderr()) {
		t.Errorf("no sum in the summary:\n%s", r.Stderr())
	}
	r.says("still resident at the end: ")
	r.says("lost: 0")
}

// A process that is killed leaves a whole trace, with what it had touched. A tracer that is killed
// leaves a process that goes on, and nothing in the kernel.
func TestGrowthAndKills(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "faults")
	t.Run("process", func(t *testing.T) {
		child := testutil.Spawn(t, program)
		child.Ready()
		r := start(t, child, "-e", "growth")
		child.Go()
		child.Ready()
		child.Signal(syscall.SIGKILL)
		child.Wait()
		r.ends(cli.OK)
		if sum := residentBytes(t, r.trace()); sum < 8<<20 {
			t.Errorf("the trace has %d bytes, the program has touched huge pages of 8 MiB", sum)
		}
	})
	t.Run("tracer", func(t *testing.T) {
		child := testutil.Spawn(t, program)
		child.Ready()
		r := start(t, child, "-e", "growth")
		left := testutil.KernelObjectsOf(t, r.PID)
		r.Signal(syscall.SIGKILL)
		r.Wait()
		child.Go()
		child.Ready()
		child.Go()
		child.Succeed()
		left.Gone(t)
	})
}

// What cannot be recorded together is refused, and the message has the command to use.
func TestGrowthIsRecordedAlone(t *testing.T) {
	for _, args := range []string{"-e memory:growth", "-e growth:file", "-e growth --function f", "-e growth --unwind helper", "-e growth --max-rate 10"} {
		got := finish(t, command(t, append([]string{"-p", "1"}, strings.Fields(args)...)...))
		if got.code != int(cli.Usage) || strings.Count(got.stderr, "\n") > 2 || got.stderr == "" {
			t.Errorf("%s: exit code %d\n%s", args, got.code, got.stderr)
		}
		if strings.Contains(args, ":") && !strings.Contains(got.stderr, "run a second rtrace-bpf with -e growth") {
			t.Errorf("%s: no advice in\n%s", args, got.stderr)
		}
	}
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// residentIn returns the bytes of a range of addresses that are resident at the end of a trace,
// and whose block has a stack.
func residentIn(records []*trace.Record, start, end uint64) (sum uint64) {
	live := map[uint64]uint64{}
	for _, r := range records {
		switch {
		case r.Kind != trace.KindCall:
		case r.Call.Op == trace.OpFree:
			delete(live, r.Call.ID)
		case len(r.Call.Stack.Frames) > 0:
			live[r.Call.ID] = r.Call.Size
		}
	}
	for id, size := range live {
		if from, to := max(id, start), min(id+size, end); from < to {
			sum += to - from
		}
	}
	return sum
}

// In a container the tracer's process numbers differ from those of the kernel, whose tracepoints
// run for all processes. What the program has touched is in the trace, place by place.
func TestGrowthInPIDNamespace(t *testing.T) {
	testutil.NeedBPF(t)
	dir := t.TempDir()
	out, ready := filepath.Join(dir, "trace"), filepath.Join(dir, "ready")
	enough, done := filepath.Join(dir, "enough"), filepath.Join(dir, "done")
	if err := syscall.Mkfifo(enough, 0o600); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const script = `"$0" & p=$!; "$1" -p $p -e growth -o "$2" --ready-file "$3" & q=$!
		read line <"$4"; kill $q; wait $q; s=$?; echo >"$5"; wait $p && exit $s`
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script, testutil.Build(t, "faults"), exe, out, ready, enough, done)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	child := testutil.Start(t, cmd)
	child.Ready()
	testutil.WaitFile(t, ready, child)
	child.Go()
	child.Ready()
	if err := os.WriteFile(enough, []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	testutil.WaitFile(t, done, child)
	child.Go()
	child.Succeed()
	records := load(t, out)
	if pid := records[0].PID; pid <= 0 || pid > 10 {
		t.Errorf("process %d in the trace, want its number in the namespace", pid)
	}
	for place, want := range child.Report().Leaks {
		var function string
		var start, end uint64
		if _, err := fmt.Sscanf(place, "%s %x %x", &function, &start, &end); err != nil {
			t.Fatal(place, err)
		}
		if got := residentIn(records, start, end); got != want {
			t.Errorf("%s: %d bytes in the trace, %d by the program", function, got, want)
		}
	}
}

// A process that executes another program has other memory. All of it is in the trace, and what
// the first program had touched is gone.
func TestGrowthOfExec(t *testing.T) {
	testutil.NeedBPF(t)
	child := waiting(t, "exec", "10", testutil.Build(t, "faults"))
	r := start(t, child, "-e", "growth")
	child.Go()
	child.Ready()
	child.Go()
	child.Ready()
	after := rssOf(t, child.PID)
	r.Signal(syscall.SIGINT)
	r.ends(cli.OK)
	child.Go()
	child.Succeed()
	records := r.trace()
	sum, stackless := residentBytes(t, records), residentBytes(t, withoutStack(records))
	if sum > after || sum+sum/20 < after || stackless*20 > sum {
		t.Errorf("the trace has %d bytes, %d without a stack; RSS is %d\n%s", sum, stackless, after, r.Stderr())
	}
}

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/recording/excerpt"
	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/internal/topview"
	"rtrace-bpf/trace"
)

// A trace from a key has the calls between two presses, and is whole: after the second press, and
// when the process or top ends first.
func TestTopTrace(t *testing.T) {
	const rounds = 20
	rtrace := testutil.BuildCommand(t, "rtrace-bpf/cmd/rtrace")
	child := waiting(t, "phases", "5", fmt.Sprint(rounds))
	x := openTerminal(t, 100, 24, child)
	x.await("no call has been recorded yet")
	phase := func(blocks int) {
		child.Go()
		child.Ready()
		x.await(fmt.Sprintf(`in %d blocks  allocates`, blocks))
	}
	begin := func(n int) string {
		file := fmt.Sprintf("rtrace-raw-%d-%d", child.PID, n)
		x.keys("t")
		x.await(`(?m)^writing ` + file + `; t ends it$`)
		return filepath.Join(x.dir, file)
	}
	phase(1)
	first := begin(0)
	phase(2)
	x.keys("t")
	x.await(`(?m)^wrote .*-0$`)
	phase(3)
	second := begin(1)
	phase(4)
	x.keys("C-c")
	if code := x.status(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	x.await("rtrace-bpf top: wrote .*-0", "rtrace-bpf top: wrote .*-1")
	y := openTerminal(t, 100, 24, child)
	y.await("no call has been recorded yet")
	x = y
	third := begin(0)
	child.Go()
	child.Ready()
	child.Go()
	child.Succeed()
	y.await("ENDED: ")
	for path, size := range map[string]uint64{first: 1001, second: 1003, third: 1004} {
		excerptIs(t, rtrace, path, child.PID, rounds, size)
	}
}

// excerptIs fails the test unless a trace has a number of allocations of one size, of which all but
// one were freed, and its end, and rtrace finds the block that is left.
func excerptIs(t *testing.T, rtrace, path string, pid, rounds int, size uint64) {
	t.Helper()
	allocs, frees, mappings := 0, 0, 0
	var last *trace.Record
	for _, r := range load(t, path) {
		last = r
		switch {
		case r.PID != 0 && int(r.PID) != pid:
			t.Errorf("%s: a record of process %d: %+v", path, r.PID, r)
		case r.Kind == trace.KindMapping:
			mappings++
		case r.Kind != trace.KindCall:
		case r.Call.Op == trace.OpAlloc && r.Call.Size == size:
			allocs++
		case r.Call.Op == trace.OpFree:
			frees++
		default:
			t.Errorf("%s: a call outside: %+v", path, r.Call)
		}
	}
	if allocs != rounds || frees != rounds-1 || mappings == 0 || last.Kind != trace.KindEnd {
		t.Errorf("%s: %d allocations and %d frees, %d mappings, ends with %v", path, allocs, frees, mappings, last.Kind)
	}
	out, err := exec.Command(rtrace, "leaks", "-r", "--by", "stack", path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprint(size)) || !strings.Contains(string(out), "main") {
		t.Errorf("rtrace leaks: %v\n%s", err, out)
	}
}

// A trace that cannot be made is refused in one line.
func TestTopTraceRefused(t *testing.T) {
	x := &topScreen{watching: &watching{}, model: topview.New(nil, topview.Options{By: topview.BySite, Order: topview.OrderLive})}
	last := func() string {
		lines := x.model.View(200, 10)
		return lines[len(lines)-1].Text
	}
	path := filepath.Join(t.TempDir(), "none", "trace")
	x.watching.traces = excerpt.New(excerpt.Options{Format: encoder.Default, Output: output.Options{Path: path}})
	if cmd := x.trace(); cmd != nil || last() != "no trace: "+excerpt.ErrEnded.Error() {
		t.Errorf("without a process: %s", last())
	}
	x.watching.traces.Writer(1, nil)
	if cmd := x.trace(); cmd != nil || !strings.HasPrefix(last(), "no trace: ") || !strings.Contains(last(), "no such file or directory") || x.watching.traces.On() {
		t.Errorf("without a directory: %s", last())
	}
}

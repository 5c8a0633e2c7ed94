package survey

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/testutil"
)

// A process with as many mappings as the kernel allows is read like any other.
func TestManyMappings(t *testing.T) {
	const many = "60000"
	program := testutil.Build(t, "mapmany")
	child := testutil.Spawn(t, program, many, "0", program)
	child.Ready()
	d := document(t, child.PID)
	if n := sizes(d, explain.Program).count; n < 60000 {
		t.Errorf("%d mappings of the program, want at least %s", n, many)
	}
	child.Go()
	child.Succeed()
}

// Mappings of terabytes are counted, but their pages are not all looked at.
func TestSparseMappings(t *testing.T) {
	child := testutil.Spawn(t, testutil.Build(t, "residence", "-pthread"), "sparse", "100")
	child.Ready()
	d, err := Read(t.Context(), child.PID, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !d.AddsUp() || !slices.ContainsFunc(d.Notes, func(n string) bool { return strings.Contains(n, "not all of it was looked at") }) {
		t.Errorf("the rows have %d bytes of %d; notes %q", d.Sum, d.Resident, d.Notes)
	}
	if row := sizes(d, explain.Anonymous); row.count < 100 || row.resident < 100*4096 {
		t.Errorf("%+v, want 100 mappings with a page each", row)
	}
	child.Go()
	child.Succeed()
}

// readable fails the test unless a process is read as it is, or has ended.
func readable(t *testing.T, pid int) {
	t.Helper()
	d, err := Read(t.Context(), pid, Options{Check: true})
	switch {
	case errors.Is(err, proc.ErrNoProcess), errors.Is(err, proc.ErrNoProgram):
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q has several lines", err)
		}
	case err != nil:
		t.Errorf("%v", err)
	case !d.AddsUp() && len(d.Notes) == 0:
		t.Errorf("the rows have %d bytes of %d, and no note says so", d.Sum, d.Resident)
	}
}

// A process that executes another program again and again is read as one of them, or not at all.
func TestExecMeanwhile(t *testing.T) {
	child := testutil.Spawn(t, testutil.Build(t, "execagain"), "0")
	child.Ready()
	child.Go()
	for range 100 {
		readable(t, child.PID)
	}
}

// A process that ends while it is read is no failure of another kind.
func TestExitMeanwhile(t *testing.T) {
	for range 50 {
		cmd := exec.Command("true")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		readable(t, cmd.Process.Pid)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// A stopped process is read, and stays stopped.
func TestStopped(t *testing.T) {
	child := testutil.Spawn(t, testutil.Build(t, "residence", "-pthread"), "leak", "8")
	child.Ready()
	child.Signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	for !status.Stopped() {
		if _, err := syscall.Wait4(child.PID, &status, syscall.WUNTRACED, nil); err != nil {
			t.Fatal(err)
		}
	}
	leads(t, document(t, child.PID), explain.AboutLive)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child.PID))
	if err != nil || !strings.Contains(string(text), ") T ") {
		t.Errorf("%v: %s is not stopped", err, text)
	}
	child.Signal(syscall.SIGCONT)
	child.Go()
	child.Succeed()
}

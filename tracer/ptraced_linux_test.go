package tracer

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// A process under strace can be traced: both see all calls, and the process behaves as it
// does alone.
func TestUnderStrace(t *testing.T) {
	testutil.NeedBPF(t)
	for _, p := range harmlessPrograms {
		if p.how != "signals" && p.how != "jumps" && p.how != "exit" && p.how != "fork" {
			continue
		}
		t.Run(p.how, func(t *testing.T) {
			program := testutil.Build(t, p.name)
			alone := testutil.Spawn(t, program, p.how, p.rounds)
			alone.Ready()
			alone.Go()
			code, want := alone.Wait(), string(alone.Output())
			strace := testutil.Start(t, exec.Command(installed(t, "strace"), "-f", "-o", "/dev/null", "-e", "trace=!all", program, p.how, p.rounds))
			strace.Ready()
			r := attachTo(t, childOf(t, strace.PID), nil)
			strace.Go()
			if got := strace.Wait(); got != code || string(strace.Output()) != want {
				t.Errorf("it ends with %d, alone with %d; it prints %q, alone %q", got, code, strace.Output(), want)
			}
			if len(ofKind(r.end(), trace.KindCall)) == 0 {
				t.Error("no calls in the trace")
			}
		})
	}
}

// childOf returns the one child of a process.
func childOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return child
}

// Debuggers attach and detach while a process is traced: strace is attached before the
// tracer and gdb after it, and each detaches while the process continues.
func TestDebuggersComeAndGo(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "churn"), "4")
	child.Ready()
	messages, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer messages.Close()
	cmd := exec.Command(installed(t, "strace"), "-f", "-o", "/dev/null", "-e", "trace=!all", "-p", strconv.Itoa(child.PID))
	cmd.Stderr = stderr
	strace := testutil.Start(t, cmd)
	stderr.Close()
	lines := bufio.NewScanner(messages)
	if !lines.Scan() || !strings.Contains(lines.Text(), "attached") {
		t.Fatalf("strace prints %q", lines.Text())
	}
	called := make(chan struct{}, 1)
	r := watched(t, child.PID, nil, func(_ *recording, rec *trace.Record) {
		if rec.Kind == trace.KindCall {
			select {
			case called <- struct{}{}:
			default:
			}
		}
	})
	recorded := func() {
		t.Helper()
		select {
		case <-called:
		case <-child.Exited():
			t.Fatalf("the program has ended: %s", child.Stderr())
		}
	}
	child.Go()
	recorded()
	strace.Signal(os.Interrupt)
	for lines.Scan() { // until strace ends
	}
	strace.Wait()
	gdb := exec.Command(installed(t, "gdb"), "-nx", "-batch", "-p", strconv.Itoa(child.PID), "-ex", "thread apply all backtrace 3", "-ex", "detach")
	if text, err := gdb.Output(); err != nil || strings.Count(string(text), "\nThread ") != 5 {
		t.Errorf("gdb: %v\n%s", err, text)
	}
	recorded()
	recorded() // the first one may be from before gdb left
	r.tracer.Stop()
	r.end()
	testutil.CodeOf(t, child.PID).Original(t)
	child.Go()
	if report := child.Report(); report.Wrong != 0 || report.Ops["alloc"] != report.Ops["free"] {
		t.Errorf("the program has %d wrong blocks and made %v", report.Wrong, report.Ops)
	}
}

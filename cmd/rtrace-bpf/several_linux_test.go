package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// startOn runs the command with flags that select processes, and waits until the probes are
// attached.
func startOn(t *testing.T, args ...string) *running {
	t.Helper()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	cmd := command(t, append([]string{"--ready-file", ready}, args...)...)
	cmd.Dir = dir
	return startIn(t, cmd, dir, ready)
}

// traceOf reads the trace of a process.
func (r *running) traceOf(child *testutil.Child) []*trace.Record {
	r.t.Helper()
	return load(r.t, r.path(child))
}

func (r *running) path(child *testutil.Child) string {
	return filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0", child.PID))
}

// of fails the test unless all calls of a trace are of one process.
func of(t *testing.T, records []*trace.Record, child *testutil.Child) {
	t.Helper()
	for _, rec := range records {
		if rec.Kind == trace.KindCall && rec.PID != int32(child.PID) {
			t.Fatalf("a call of process %d in the trace of %d", rec.PID, child.PID)
		}
	}
}

// copied copies a program to a command name that no other process has.
func copied(t *testing.T, program, suffix string) (path, comm string) {
	t.Helper()
	text, err := os.ReadFile(testutil.Build(t, program))
	if err != nil {
		t.Fatal(err)
	}
	comm = fmt.Sprintf("t%d%s", os.Getpid(), suffix)
	path = filepath.Join(t.TempDir(), comm)
	if err := os.WriteFile(path, text, 0o700); err != nil {
		t.Fatal(err)
	}
	return path, comm
}

func list(children ...*testutil.Child) string {
	var all []string
	for _, c := range children {
		all = append(all, fmt.Sprint(c.PID))
	}
	return strings.Join(all, ",")
}

// Each process has its own trace with exactly its calls.
func TestSeveralProcesses(t *testing.T) {
	first, second, third := waiting(t, "alloc", "2", "500"), waiting(t, "alloc", "1", "70"), waiting(t, "alloc", "3", "9")
	r := startOn(t, "-p", list(first, second), "-p", fmt.Sprint(third.PID))
	rounds := map[*testutil.Child]int{first: 1000, second: 70, third: 27}
	for child := range rounds {
		child.Go()
	}
	for child := range rounds {
		child.Succeed()
	}
	r.ends(cli.OK)
	for child, n := range rounds {
		records := r.traceOf(child)
		of(t, records, child)
		if got := count(records, "calloc"); got != n {
			t.Errorf("%d calls of calloc in the trace of %d, want %d", got, child.PID, n)
		}
		r.says(fmt.Sprintf("tracing process %d", child.PID))
		if _, err := os.Stat(r.path(child) + ".side"); err != nil {
			t.Error(err)
		}
	}
	r.counts(fmt.Sprintf("process %d", first.PID), 3002, 3000)
	r.counts(fmt.Sprintf("process %d", second.PID), 211, 210)
	r.counts(fmt.Sprintf("process %d", third.PID), 84, 81)
	r.counts("3 processes,", 3297, 3291)
	r.says("rtrace-bpf:   live at the end: 6 blocks")
	r.says("rtrace-bpf:   lost: 0")
}

// The files of a process that ends are complete while others go on.
func TestOneEndsWhileOthersGoOn(t *testing.T) {
	first, second := waiting(t, "alloc", "1", "100"), waiting(t, "alloc", "1", "200")
	r := startOn(t, "-p", list(first, second))
	first.Go()
	first.Succeed()
	// The side file gets its name when it is complete.
	testutil.WaitFile(t, r.path(first)+".side", r.Child)
	if n := count(r.traceOf(first), "calloc"); n != 100 {
		t.Errorf("%d calls of calloc in the first trace, want 100", n)
	}
	if _, err := os.Stat(r.path(second) + ".side"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the second trace is complete: %v", err)
	}
	second.Go()
	second.Succeed()
	r.ends(cli.OK)
	if n := count(r.traceOf(second), "calloc"); n != 200 {
		t.Errorf("%d calls of calloc in the second trace, want 200", n)
	}
}

// Ctrl-C and --duration end all traces, and the processes go on.
func TestAllEnd(t *testing.T) {
	for name, args := range map[string][]string{"signal": nil, "duration": {"--duration", "50ms"}} {
		t.Run(name, func(t *testing.T) {
			first, second := waiting(t, "loop", "1"), waiting(t, "loop", "2")
			r := startOn(t, append(append(args, ample...), "-p", list(first, second))...)
			first.Go()
			second.Go()
			if args == nil {
				r.Signal(syscall.SIGINT)
			}
			r.ends(cli.OK)
			for _, child := range []*testutil.Child{first, second} {
				of(t, r.traceOf(child), child)
				child.Go()
				child.Succeed()
			}
		})
	}
}

// If a process cannot be traced, the command reports it and traces the others.
func TestSomeCannotBeTraced(t *testing.T) {
	testutil.NeedBPF(t)
	tool := rtrace(t)
	testutil.Build(t, "alloc")
	testutil.Build(t, "loop")
	gone := testutil.Start(t, exec.Command("true"))
	gone.Wait()
	cmd := exec.Command(tool, "info", "-") // a program without a C library
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	cmd.Stdin = read
	static := testutil.Start(t, cmd)
	child := waiting(t, "alloc", "1", "30")
	r := startOn(t, "-p", list(gone, child, static))
	child.Go()
	child.Succeed()
	r.ends(cli.Incomplete)
	if n := count(r.traceOf(child), "calloc"); n != 30 {
		t.Errorf("%d calls of calloc in the trace, want 30", n)
	}
	r.says(fmt.Sprintf("rtrace-bpf: not traced: process %d: no such process\n", gone.PID))
	r.says(fmt.Sprintf("rtrace-bpf: not traced: process %d", static.PID))
	r.says("has no known allocator: it is a Go program")
	r.says("2 of 3 processes could not be traced")
	if all, err := filepath.Glob(filepath.Join(r.dir, "rtrace-raw-*")); err != nil || len(all) != 2 {
		t.Errorf("files: %v, %v", all, err)
	}
	// If none can be traced, the command fails.
	got := finish(t, command(t, "-p", list(gone, static), "-o", t.TempDir()))
	if got.code != int(cli.Failed) || !strings.Contains(got.stderr, "none of the 2 processes can be traced") {
		t.Errorf("exit code %d\n%s", got.code, got.stderr)
	}
	// A dry run reports the processes that cannot be traced, too.
	got = finish(t, command(t, "-p", list(gone, waiting(t, "loop", "1")), "--dry-run"))
	if got.code != int(cli.Incomplete) || !strings.Contains(got.stdout, "malloc") || !strings.Contains(got.stderr, "1 of 2 processes could not be traced") {
		t.Errorf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// An error that keeps all processes from being traced is reported once.
func TestSeveralWithoutOutput(t *testing.T) {
	first, second := waiting(t, "loop", "1"), waiting(t, "loop", "1")
	got := finish(t, command(t, "-p", list(first, second), "-o", "/proc/self"))
	if got.code != int(cli.Failed) || strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, "rtrace-raw") {
		t.Errorf("exit code %d\n%s", got.code, got.stderr)
	}
}

// One file cannot hold several traces.
func TestSeveralIntoOneFile(t *testing.T) {
	first, second := waiting(t, "loop", "1"), waiting(t, "loop", "1")
	for _, output := range []string{"-", "stdout", "new", "/dev/null"} {
		dir := t.TempDir()
		cmd := command(t, "-p", list(first, second), "-o", output)
		cmd.Dir = dir
		got := finish(t, cmd)
		if got.code != int(cli.Usage) || !strings.Contains(got.stderr, "takes one trace, and 2 processes are selected") || got.stdout != "" {
			t.Errorf("-o %s: exit code %d\n%s", output, got.code, got.stderr)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	// A file can hold the trace of one process, however it is selected.
	path, comm := copied(t, "alloc", "one")
	child := testutil.Spawn(t, path, "1", "10")
	child.Ready()
	r := startOn(t, "--comm", comm, "-o", "trace")
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	if n := count(load(t, filepath.Join(r.dir, "trace")), "calloc"); n != 10 {
		t.Errorf("%d calls of calloc in the trace, want 10", n)
	}
}

// Processes are found by name; other processes are left alone.
func TestSelectedByName(t *testing.T) {
	testutil.NeedBPF(t)
	path, comm := copied(t, "alloc", "sel")
	first, second := testutil.Spawn(t, path, "1", "10"), testutil.Spawn(t, path, "1", "20")
	other := waiting(t, "alloc", "1", "30")
	first.Ready()
	second.Ready()
	r := startOn(t, "--comm", comm, "--uid", fmt.Sprint(os.Getuid()))
	for _, child := range []*testutil.Child{first, second, other} {
		child.Go()
		child.Succeed()
	}
	r.ends(cli.OK)
	if a, b := count(r.traceOf(first), "calloc"), count(r.traceOf(second), "calloc"); a != 10 || b != 20 {
		t.Errorf("%d and %d calls of calloc, want 10 and 20", a, b)
	}
	if _, err := os.Stat(r.path(other)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("another process was traced: %v", err)
	}
	got := finish(t, command(t, "--comm", comm+"x"))
	if got.code != int(cli.Failed) || !strings.Contains(got.stderr, "no process named") {
		t.Errorf("exit code %d\n%s", got.code, got.stderr)
	}
}

// With --strict, a loss ends all traces.
func TestStrictEndsAll(t *testing.T) {
	first, second := waiting(t, "loop", "1", "400000"), waiting(t, "loop", "1")
	r := startOn(t, "-p", list(first, second), "--ring-size", "64k", "--strict")
	// The tracer is stopped and cannot read, so the ring must overflow.
	r.Signal(syscall.SIGSTOP)
	first.Go()
	first.Succeed()
	r.Signal(syscall.SIGCONT)
	r.ends(cli.Failed)
	r.says(fmt.Sprintf("process %d: ", first.PID))
	r.says("the trace ends at the first loss")
	r.traceOf(second)
	second.Go()
	second.Go()
	second.Succeed()
}

// MTRC looks up the names of functions at the end, for one process after the other.
func TestSeveralMTRC(t *testing.T) {
	first, second := waiting(t, "alloc", "1", "100"), waiting(t, "alloc", "1", "200")
	r := startOn(t, "-p", list(first, second), "--format", "mtrc")
	for _, child := range []*testutil.Child{first, second} {
		child.Go()
		child.Succeed()
	}
	r.ends(cli.OK)
	for child, rounds := range map[*testutil.Child]int{first: 100, second: 200} {
		calls, named := 0, 0
		for _, rec := range load(t, r.path(child)+".mtrc") {
			if rec.Kind == trace.KindCall {
				calls++
				if rec.Call.Caller.Function != "" {
					named++
				}
			}
		}
		// Frees have no stack, and therefore no caller.
		if want, wantNamed := 5*rounds+1, 3*rounds+1; calls != want || named != wantNamed {
			t.Errorf("%d calls in the trace of %d, %d of them with a caller, want %d and %d", calls, child.PID, named, want, wantNamed)
		}
	}
}

// In a container the tracer's process numbers differ from those of the kernel, for all
// processes.
func TestSeveralInPIDNamespace(t *testing.T) {
	testutil.NeedBPF(t)
	path, comm := copied(t, "loop", "ns")
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Each process has its own gate, and here both report that they are ready.
	gates := [2]*os.File{}
	for i := range gates {
		gates[i] = fifo(t, filepath.Join(dir, fmt.Sprint("gate", i)))
	}
	const pairs = 100
	const script = `"$0" 1 $4 4<"$2/gate0" & p=$!; "$0" 1 $4 4<"$2/gate1" & read line
		"$1" -p $p --comm "$3" -o "$2" --ready-file "$2/ready"; s=$?; wait; exit $s`
	begin, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer begin.Close()
	defer write.Close()
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script, path, exe, dir, comm, fmt.Sprint(pairs))
	cmd.Env, cmd.Stdin = append(os.Environ(), asCommand+"=1"), begin
	child := testutil.Start(t, cmd)
	for range gates {
		child.Ready()
	}
	if _, err := write.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	testutil.WaitFile(t, filepath.Join(dir, "ready"), child)
	for _, gate := range gates {
		if _, err := gate.WriteString("\n"); err != nil {
			t.Fatal(err)
		}
	}
	child.Succeed()
	all, err := filepath.Glob(filepath.Join(dir, "rtrace-raw-*-0"))
	if err != nil || len(all) != 2 {
		t.Fatalf("traces: %v, %v", all, err)
	}
	for _, path := range all {
		records := load(t, path)
		pid := records[0].PID
		if want := fmt.Sprintf("rtrace-raw-%d-0", pid); filepath.Base(path) != want || pid <= 0 || pid > 10 {
			t.Errorf("%s is of process %d", path, pid)
		}
		for _, rec := range records {
			if rec.Kind == trace.KindCall && rec.PID != pid {
				t.Fatalf("a call of process %d in the trace of %d", rec.PID, pid)
			}
		}
		if n := count(records, "malloc"); n != pairs {
			t.Errorf("%d calls of malloc in %s, want %d", n, path, pairs)
		}
	}
}

// fifo makes a FIFO that always has a writer.
func fifo(t *testing.T, path string) *os.File {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

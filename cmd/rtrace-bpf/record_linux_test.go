package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// waiting starts a program that waits at the gate.
func waiting(t *testing.T, program string, args ...string) *testutil.Child {
	t.Helper()
	return waitingOf(t, testutil.Build, program, args...)
}

// waitingOf does the same with a program of another width.
func waitingOf(t *testing.T, build testutil.Builder, program string, args ...string) *testutil.Child {
	t.Helper()
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, build(t, program), args...)
	child.Ready()
	return child
}

// ample are flags for programs that call the allocator all the time: the rings hold the
// events of a second, so that a busy machine does not fail the test.
var ample = []string{"--ring-size", "64M"}

func TestRecordsUntilTheProcessEnds(t *testing.T) {
	testutil.EachWidth(t, recordsUntilTheProcessEnds)
}

func recordsUntilTheProcessEnds(t *testing.T, build testutil.Builder) {
	child := waitingOf(t, build, "alloc", "2", "500")
	r := start(t, child)
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	records := r.trace()
	if n := count(records, "calloc"); n != 1000 {
		t.Errorf("%d calls of calloc in the trace, want 1000", n)
	}
	r.says("tracing process")
	r.counts("rtrace-bpf", 3002, 3000)
	r.says("live at the end: 2 blocks")
	r.says("lost: 0")
	if _, err := os.Stat(filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.side", child.PID))); err != nil {
		t.Error(err)
	}
}

func TestFormats(t *testing.T) {
	for format, suffix := range map[string]string{"sprtrace": "", "jsonl": ".jsonl", "text": ".txt", "nettrace": ".nettrace"} {
		t.Run(format, func(t *testing.T) {
			child := waiting(t, "alloc", "1", "100")
			r := start(t, child, "--format", format, "-q")
			child.Go()
			child.Succeed()
			r.ends(cli.OK)
			if len(r.Stderr()) > 0 {
				t.Errorf("-q, but: %s", r.Stderr())
			}
			records := load(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, suffix)))
			if n := count(records, "calloc"); n != 100 {
				t.Errorf("%d calls of calloc in the trace, want 100", n)
			}
			if n := count(records, "malloc"); n != 101 {
				t.Errorf("%d calls of malloc in the trace, want 101", n)
			}
		})
	}
}

// The dialect of the protocol document, as the tracer writes and reads it.
func TestDocumentDialect(t *testing.T) {
	child := waiting(t, "alloc", "1", "50")
	r := start(t, child, "--rtrace-dialect", "document")
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	records := r.trace()
	if records[0].Header.Version != "1.4" || count(records, "calloc") != 50 {
		t.Errorf("version %s with %d calls of calloc, want 1.4 with 50", records[0].Header.Version, count(records, "calloc"))
	}
}

// A signal ends the trace in order; the process goes on.
func TestSignals(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			child := waiting(t, "loop", "1")
			r := start(t, child, ample...)
			child.Go()
			r.Signal(sig)
			r.ends(cli.OK)
			r.trace()
			child.Go()
			child.Succeed()
		})
	}
}

// When its terminal goes away, the trace ends in order, unless rtrace-bpf was started with nohup.
func TestHangUp(t *testing.T) {
	for _, disposition := range []string{"default", "ignore"} {
		t.Run(disposition, func(t *testing.T) {
			child := waiting(t, "loop", "1")
			dir := t.TempDir()
			ready := filepath.Join(dir, "ready")
			cmd := command(t, append(ample, "-p", fmt.Sprint(child.PID), "--ready-file", ready)...)
			env, err := exec.LookPath("env")
			if err != nil {
				t.Fatal(err)
			}
			cmd.Dir, cmd.Path, cmd.Args = dir, env, append([]string{"env", "--" + disposition + "-signal=HUP"}, cmd.Args...)
			r := startIn(t, cmd, dir, ready)
			child.Go()
			r.Signal(syscall.SIGHUP)
			if disposition == "default" {
				r.ends(cli.OK) // before the process
				r.trace()
			}
			child.Go()
			child.Succeed()
			if disposition == "ignore" {
				r.ends(cli.OK)
				if got := count(r.trace(), "malloc"); uint64(got) != child.Report().Pairs {
					t.Errorf("%d calls, want those until the process ended, %d", got, child.Report().Pairs)
				}
			}
		})
	}
}

// A second signal ends the recording at once; what was read until then is a whole trace.
func TestSecondSignal(t *testing.T) {
	child := waiting(t, "loop", "1", "400000")
	r := start(t, child, ample...)
	// The tracer is stopped, so that it then gets both signals at once, with a full ring to
	// read.
	r.Signal(syscall.SIGSTOP)
	child.Go()
	child.Succeed()
	r.Signal(syscall.SIGINT)
	r.Signal(syscall.SIGTERM)
	r.Signal(syscall.SIGCONT)
	r.ends(cli.Failed)
	r.says("ended at once by a second signal")
	if n := count(loadEnded(t, r.path(child)), "malloc"); n == 400000 {
		t.Error("everything was read")
	}
}

// A second signal ends the recording even if its output is not read.
func TestSecondSignalWithoutReader(t *testing.T) {
	child := waiting(t, "loop", "1")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	cmd := command(t, append(ample, "-p", fmt.Sprint(child.PID), "-q", "-o", "-", "--format", "text", "--ready-file", ready)...)
	cmd.Stdout = write
	r := startIn(t, cmd, dir, ready)
	child.Go()
	full(t, write, cmd.Process.Pid)
	write.Close()
	r.Signal(syscall.SIGINT)
	r.Signal(syscall.SIGTERM)
	r.ends(cli.Failed)
	child.Go()
	child.Succeed()
}

// full returns when a process has filled a pipe without a reader; write is an end of it.
// The kernel reports no event about that, so full asks repeatedly.
func full(t *testing.T, write *os.File, pid int) {
	t.Helper()
	defer testutil.Unstuck(t, pid)()
	room := []unix.PollFd{{Fd: int32(write.Fd()), Events: unix.POLLOUT}}
	for {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Fatal(err)
		}
		switch n, err := unix.Poll(room, 0); {
		case err != nil && !errors.Is(err, unix.EINTR):
			t.Fatal(err)
		case err == nil && n == 0:
			return
		}
		runtime.Gosched()
	}
}

func TestDuration(t *testing.T) {
	child := waiting(t, "loop", "1")
	r := start(t, child, append(ample, "--duration", "50ms")...)
	child.Go()
	r.ends(cli.OK)
	r.trace()
	child.Go()
	child.Succeed()
}

// SIGKILL cannot be handled, but the kernel removes the probes, the process goes on, and
// the flushed part of the trace can be read.
func TestSIGKILL(t *testing.T) {
	child, counts := churning(t)
	r := start(t, child)
	child.Go()
	progress(t, child, counts)
	r.Signal(syscall.SIGKILL)
	if got := r.Wait(); got != 128+9 {
		t.Errorf("exit code %d", got)
	}
	left, err := os.ReadDir(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		if name := entry.Name(); name != "ready" && name != fmt.Sprintf("rtrace-raw-%d-0", child.PID) {
			t.Errorf("%s is left behind", name)
		}
	}
	progress(t, child, counts)
	child.Go()
	child.Succeed()
	if report := child.Report(); report.Wrong != 0 || report.Ops["alloc"] == 0 || report.Ops["alloc"] != report.Ops["free"] {
		t.Errorf("the program has %d wrong blocks and made %v", report.Wrong, report.Ops)
	}
}

// If the reader of the output goes away, the recording ends without a message.
func TestOutputReaderGoesAway(t *testing.T) {
	child := waiting(t, "loop", "1")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	cmd := command(t, "-p", fmt.Sprint(child.PID), "-q", "-o", "-", "--format", "text", "--ready-file", ready)
	cmd.Stdout = write
	r := startIn(t, cmd, dir, ready)
	write.Close()
	child.Go()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "version=2.0") {
		t.Errorf("first line %q, %v", line, err)
	}
	read.Close()
	r.ends(cli.Failed)
	if len(r.Stderr()) > 0 {
		t.Errorf("standard error: %s", r.Stderr())
	}
	child.Go()
	child.Succeed()
}

func TestStreams(t *testing.T) {
	child := waiting(t, "alloc", "1", "10")
	r := start(t, child, "-o", "-", "--format", "jsonl", "-q")
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, r.Output(), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := count(load(t, path), "calloc"); n != 10 {
		t.Errorf("%d calls of calloc in the stream, want 10", n)
	}
}

// A full disk ends the trace with exit code 1. The records in the file are whole.
func TestDiskFull(t *testing.T) {
	for _, format := range []string{"sprtrace", "text", "jsonl", "swap", "nettrace"} { // mtrc: TestMTRCDiskFull
		t.Run(format, func(t *testing.T) { diskFull(t, format) })
	}
}

func diskFull(t *testing.T, format string) {
	t.Helper()
	child := waiting(t, "loop", "1")
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=512k"); err != nil {
		t.Fatalf("mount a small disk: %v", err)
	}
	defer func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	}()
	r := start(t, child, "-o", filepath.Join(disk, "trace"), "--format", format)
	child.Go()
	r.ends(cli.Failed)
	r.says("no space left on device")
	if n := strings.Count(string(r.Stderr()), "no space left on device"); n != 1 {
		t.Errorf("the disk is said to be full %d times:\n%s", n, r.Stderr())
	}
	records := loadEnded(t, filepath.Join(disk, "trace"))
	if count(records, "malloc") == 0 {
		t.Error("no calls in the file")
	}
	child.Go()
	child.Succeed()
}

func TestOutputsThatCannotBe(t *testing.T) {
	child := waiting(t, "loop", "1")
	dir := t.TempDir()
	exists := filepath.Join(dir, "exists")
	if err := os.WriteFile(exists, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ output, want string }{
		"directory missing":    {filepath.Join(dir, "no", "trace"), "no such file or directory"},
		"no such directories":  {filepath.Join(dir, "no", "deeper") + "/", "no such file or directory"},
		"file exists":          {exists, "file exists"},
		"directory not usable": {"/proc/self", "rtrace-raw"},
	} {
		t.Run(name, func(t *testing.T) {
			got := finish(t, command(t, "-p", fmt.Sprint(child.PID), "-o", test.output))
			if got.code != int(cli.Failed) || !strings.Contains(got.stderr, test.want) {
				t.Errorf("exit code %d, %q in it wanted:\n%s", got.code, test.want, got.stderr)
			}
		})
	}
	if b, _ := os.ReadFile(exists); string(b) != "precious" {
		t.Error("the file was touched")
	}
}

// Traces in one directory are numbered. An existing FIFO is used as output.
func TestOutputNames(t *testing.T) {
	child := waiting(t, "loop", "1")
	dir := t.TempDir()
	for n := range 3 {
		r := start(t, child, "-o", dir, "--duration", "1ms", "-q")
		r.ends(cli.OK)
		if _, err := os.Stat(filepath.Join(dir, fmt.Sprintf("rtrace-raw-%d-%d", child.PID, n))); err != nil {
			t.Error(err)
		}
	}
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cat := exec.Command("cat", fifo)
	reader := testutil.Start(t, cat)
	r := start(t, child, "-o", fifo, "--duration", "1ms", "-q")
	r.ends(cli.OK)
	reader.Succeed()
	if out := reader.Output(); len(out) == 0 || out[0] != 0xf0 {
		t.Errorf("%d bytes came through the FIFO", len(out))
	}
	child.Go()
	child.Go()
	child.Succeed()
}

// If the process executes a program with another allocator, here a static one, the command
// reports it.
func TestExecOfAnotherLibrary(t *testing.T) {
	child := waiting(t, "exec", "10", rtrace(t), "--version")
	r := start(t, child)
	child.Go()
	child.Succeed()
	r.ends(cli.Incomplete)
	r.says("the process executed a program with another allocator or none")
	if n := count(r.trace(), "malloc"); n != 10 {
		t.Errorf("%d calls of malloc in the trace, want 10", n)
	}
}

func TestDryRun(t *testing.T) {
	child := waiting(t, "loop", "1")
	got := finish(t, command(t, "-p", fmt.Sprint(child.PID), "--dry-run"))
	if got.code != 0 || got.stderr != "" {
		t.Fatalf("exit code %d\n%s", got.code, got.stderr)
	}
	for _, want := range []string{"malloc", "entry+return", "free", "aligned_alloc", "memalign", "_dl_debug_state"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in:\n%s", want, got.stdout)
		}
	}
}

// In a container the tracer's process numbers differ from those of the kernel.
func TestPIDNamespace(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "loop")
	dir := t.TempDir()
	out, ready := filepath.Join(dir, "trace"), filepath.Join(dir, "ready")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const pairs = 100
	const script = `"$0" 1 $4 & p=$!; "$1" -p $p -o "$2" --ready-file "$3"; s=$?; wait $p && exit $s`
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script, program, exe, out, ready, fmt.Sprint(pairs))
	cmd.Env = append(os.Environ(), asCommand+"=1")
	child := testutil.Start(t, cmd)
	child.Ready()
	testutil.WaitFile(t, ready, child)
	child.Go()
	child.Succeed()
	records := load(t, out)
	pid := records[0].PID
	if pid <= 0 || pid > 10 {
		t.Errorf("process %d in the trace, want its number in the namespace", pid)
	}
	if n := count(records, "malloc"); n != pairs {
		t.Errorf("%d calls of malloc in the trace, want %d", n, pairs)
	}
}

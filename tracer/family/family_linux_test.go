package family

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/launch"
)

// If this is in its environment, the test binary follows the process with this ID, and lets no
// process go.
const asHolder = "RTRACE_FAMILY_TEST_HOLD"

func TestMain(m *testing.M) {
	if text := os.Getenv(asHolder); text != "" {
		pid, err := strconv.Atoi(text)
		if err != nil {
			panic(err)
		}
		f := New(children())
		if err := f.Follow(pid); err != nil {
			panic(err)
		}
		for {
			fmt.Println("follows")
			<-f.Events()
		}
	}
	testutil.Main(m)
}

func children() <-chan os.Signal {
	wake := make(chan os.Signal, 1)
	signal.Notify(wake, unix.SIGCHLD)
	return wake
}

// needPtrace skips a test where processes must not be held.
func needPtrace(t *testing.T) {
	t.Helper()
	if text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && strings.TrimSpace(string(text)) == "3" {
		t.Skip("SKIPPED-KERNEL: ptrace is switched off (kernel.yama.ptrace_scope)")
	}
}

// waiting is a program that is held at its gate. It is the child of a shell, which ends in the
// same way. If it were a child of the test, the test would get its wait status instead of the
// family.
type waiting struct {
	*testutil.Child
	pid  int
	logs string
}

// waits starts the program family.
func waits(t *testing.T, way string) *waiting {
	t.Helper()
	logs := t.TempDir()
	w := starts(t, testutil.Build(t, "family"), logs, way)
	w.logs = logs
	return w
}

func starts(t *testing.T, argv ...string) *waiting {
	t.Helper()
	needPtrace(t)
	w := &waiting{Child: testutil.Spawn(t, "/bin/sh", append([]string{"-c", `"$@"; exit $?`, "sh"}, argv...)...)}
	w.Ready()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", w.PID, w.PID))
	if err == nil {
		w.pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// seen counts the events of a family, and lets all processes go, until the family is empty.
func seen(t *testing.T, f *Family) (counts [3]int) {
	t.Helper()
	living := map[int]bool{}
	for e := range f.Events() {
		counts[e.Kind]++
		switch e.Kind {
		case Born:
			status, err := proc.ReadStatus(e.PID)
			if err != nil || status.TracerPID != f.tid || status.State != 't' {
				t.Errorf("process %d is not held when it begins: %+v, %v", e.PID, status, err)
			}
			living[e.PID] = true
		case Became:
			if n := mapped(t, e.PID); n < 3 { // the program, its loader, its library
				t.Errorf("process %d is held with %d files of code", e.PID, n)
			}
		case Gone:
			delete(living, e.PID)
			if e.Left == 0 {
				if len(living) > 0 {
					t.Errorf("there was no event for the end of %v", living)
				}
				return counts
			}
		}
		f.Go(e.PID)
	}
	return counts
}

// mapped counts the mapped files with code of a process.
func mapped(t *testing.T, pid int) int {
	t.Helper()
	all, err := proc.Maps(pid)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{}
	for _, m := range all {
		if m.Inode != 0 && m.Perms&proc.Exec != 0 {
			files[m.Path] = true
		}
	}
	return len(files)
}

// Every descendant of a process causes events, and behaves as without tracing: the program
// succeeds only if its children end, stop and get signals as they should.
func TestFollow(t *testing.T) {
	for _, test := range []struct {
		way                string
		born, became, logs int
	}{
		{"fork", 1, 0, 2},
		{"generations", 4, 0, 5},
		{"orphan", 2, 0, 3},
		{"killed", 1, 0, 2},
		{"vfork", 1, 1, 2},
		{"spawn", 1, 1, 2},
		{"system", 2, 2, 2},
		{"threads", 3, 0, 4},
		{"signals", 1, 0, 2},
		{"execs", 0, 1, 1},
	} {
		t.Run(test.way, func(t *testing.T) {
			child := waits(t, test.way)
			f := New(children())
			defer f.Close()
			if err := f.Follow(child.pid); err != nil {
				t.Fatal(err)
			}
			child.Go()
			counts := seen(t, f)
			child.Succeed()
			if want := [3]int{test.born, test.became, test.born + 1}; counts != want {
				t.Errorf("born, became, gone: %v, want %v", counts, want)
			}
			if all, err := os.ReadDir(child.logs); err != nil || len(all) != test.logs {
				t.Errorf("%d processes have logged, %v; want %d", len(all), err, test.logs)
			}
		})
	}
}

// A command that is held by the thread that started it is followed from there.
func TestAdopt(t *testing.T) {
	needPtrace(t)
	logs := t.TempDir()
	argv := []string{testutil.Build(t, "family"), logs, "signals"}
	for range 20 { // it may or may not have taken the signal that stops it
		c, err := launch.Start(argv, launch.Options{Files: [3]*os.File{os.Stdin, os.Stderr, os.Stderr}})
		if err != nil {
			t.Fatal(err)
		}
		if there, err := c.Next(); !there || err != nil {
			t.Fatal(there, err)
		}
		f := New(children())
		if err := f.Adopt(c); err != nil {
			t.Fatal(err)
		}
		if counts := seen(t, f); counts != [3]int{1, 0, 2} {
			t.Errorf("born, became, gone: %v", counts)
		}
		f.Close()
		if code := c.Wait(); code != 0 {
			t.Fatalf("exit code %d", code)
		}
	}
}

// A process that is killed while it is held is reported as ended, and so is a command.
func TestKilledWhileHeld(t *testing.T) {
	child := waits(t, "killed")
	f := New(children())
	defer f.Close()
	if err := f.Follow(child.pid); err != nil {
		t.Fatal(err)
	}
	child.Go()
	born := <-f.Events()
	if born.Kind != Born || born.Parent != child.pid {
		t.Fatalf("%+v", born)
	}
	if err := unix.Kill(born.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if gone := <-f.Events(); gone.Kind != Gone || gone.PID != born.PID || gone.Left != 1 {
		t.Errorf("%+v", gone)
	}
	f.Go(born.PID) // no such process
	if code := child.Wait(); code == 0 {
		t.Error("the program has not missed its child")
	}
}

// A process that was dropped is not followed any more, nor are its descendants.
func TestDrop(t *testing.T) {
	child := waits(t, "generations")
	f := New(children())
	defer f.Close()
	if err := f.Follow(child.pid); err != nil {
		t.Fatal(err)
	}
	child.Go()
	f.Drop((<-f.Events()).PID)
	if e := <-f.Events(); e.Kind != Gone || e.Left != 1 {
		t.Errorf("%+v", e)
	}
	if e := <-f.Events(); e.Kind != Gone || e.PID != child.pid || e.Left != 0 {
		t.Errorf("%+v", e)
	}
	child.Succeed()
	if all, err := os.ReadDir(child.logs); err != nil || len(all) != 5 {
		t.Errorf("%d processes have logged, %v", len(all), err)
	}
}

// A closed family holds no process, not even one that was held, no matter how it is closed.
func TestClose(t *testing.T) {
	for _, how := range []string{"closed", "killed"} {
		t.Run(how, func(t *testing.T) {
			child := waits(t, "generations")
			if how == "closed" {
				f := New(children())
				if err := f.Follow(child.pid); err != nil {
					t.Fatal(err)
				}
				child.Go()
				<-f.Events()
				f.Close()
				if status, err := proc.ReadStatus(child.pid); err == nil && status.TracerPID != 0 {
					t.Errorf("it is still held: %+v", status)
				}
				f.Go(child.pid) // no such process
			} else {
				holder := held(t, child.pid)
				child.Go()
				holder.next()
				holder.kill()
			}
			child.Succeed()
		})
	}
}

// holder is another process that follows a process.
type holder struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Reader
}

func held(t *testing.T, pid int) *holder {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{t: t, cmd: exec.Command(exe)}
	h.cmd.Env, h.cmd.Stderr = append(os.Environ(), asHolder+"="+strconv.Itoa(pid)), os.Stderr
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h.lines = bufio.NewReader(out)
	h.next()
	return h
}

// next waits for the holder's next line.
func (h *holder) next() {
	h.t.Helper()
	if line, err := h.lines.ReadString('\n'); err != nil || line != "follows\n" {
		h.t.Fatalf("the holder printed %q, %v", line, err)
	}
}

func (h *holder) kill() {
	h.t.Helper()
	if err := h.cmd.Process.Kill(); err != nil {
		h.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, h.lines) // to its end
	_ = h.cmd.Wait()                    // it was killed
}

// Only one process can follow a process.
func TestAlreadyTraced(t *testing.T) {
	child := waits(t, "fork")
	h := held(t, child.pid)
	defer h.kill()
	f := New(children())
	defer f.Close()
	err := f.Follow(child.pid)
	if !errors.Is(err, ErrTraced) || !strings.Contains(err.Error(), filepath.Base(h.cmd.Path)[:8]) || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is: %v", err)
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	if err := f.Follow(gone.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("the error for a process that has ended is: %v", err)
	}
}

// Children that this program has started itself are not taken from it: the family's
// thread must not be one that has started any. Without that rule, most threads the
// runtime has at hand here would be.
func TestOwnChildren(t *testing.T) {
	const threads = 40
	var starting, ending sync.WaitGroup
	idle := make(chan struct{})
	children := make(chan *exec.Cmd, threads)
	for range threads {
		starting.Add(1)
		ending.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			cmd := exec.Command("true")
			if err := cmd.Start(); err != nil {
				t.Error(err)
			} else {
				children <- cmd
			}
			starting.Done()
			<-idle
		})
	}
	starting.Wait()
	close(idle)
	ending.Wait()
	close(children)
	for range 8 {
		f := New(nil)
		f.do(f.look)
		defer f.Close()
	}
	for cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Errorf("the family has taken the end of a child of this program: %v", err)
		}
	}
}

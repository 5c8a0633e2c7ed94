package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// renamed makes a link to a program, under a command name that no other process has. A copy
// would not find its libraries, which programs look for in their own folder.
func renamed(t *testing.T, program, suffix string) (path, comm string) {
	t.Helper()
	comm = fmt.Sprintf("w%d%s", os.Getpid(), suffix)
	path = filepath.Join(t.TempDir(), comm)
	if err := os.Symlink(program, path); err != nil {
		t.Fatal(err)
	}
	return path, comm
}

// waitFor runs the command and returns when it waits for a process.
func waitFor(t *testing.T, comm string, args ...string) *running {
	t.Helper()
	testutil.NeedBPF(t)
	return startOn(t, slices.Concat([]string{"--wait", "--comm", comm, "--format", "jsonl"}, args)...)
}

// waited reads the one trace of the command, which must be of the process pid, as the
// tracer numbers it.
func (r *running) waited(pid int) []*trace.Record {
	r.t.Helper()
	all, err := filepath.Glob(filepath.Join(r.dir, "rtrace-raw-*.jsonl"))
	if err != nil || len(all) != 1 || filepath.Base(all[0]) != fmt.Sprintf("rtrace-raw-%d-0.jsonl", pid) {
		r.t.Fatalf("traces in the directory: %v, %v; want one of process %d\n%s", all, err, pid, r.Stderr())
	}
	return load(r.t, all[0])
}

// The trace has every call from the first one of a constructor on, however the program is
// linked and the probes are attached.
func TestWaitConstructors(t *testing.T) {
	testutil.NeedBPF(t)
	library := func(flags ...string) []string {
		path := testutil.Build(t, "launch", slices.Concat([]string{"-DLIBRARY", "-shared", "-fPIC"}, flags)...)
		return slices.Concat([]string{"-DNEEDS_LIBRARY", path}, flags)
	}
	script := testutil.Build(t, "launch", library()...)
	for name, test := range map[string]struct {
		program string
		calls   int // the fewest calls
		libcs   int // the most calls of the C library
	}{
		"library":       {testutil.Build(t, "launch", library()...), 15, 0},
		"fixed":         {testutil.Build(t, "launch", slices.Concat(library(), []string{"-no-pie", "-fno-pie"})...), 15, 0},
		"static":        {testutil.Build(t, "launch", "-static"), 9, mostOfLibc},
		"static-pie":    {testutil.Build(t, "launch", "-static-pie"), 9, mostOfLibc},
		"musl library":  {testutil.Build(t, "launch", library(testutil.Musl)...), 15, 0},
		"musl alone":    {testutil.Build(t, "launch", testutil.Musl), 9, 0},
		"musl no relro": {testutil.Build(t, "launch", testutil.Musl, "-Wl,-z,norelro"), 9, 0},
		"musl static":   {testutil.Build(t, "launch", testutil.Musl, "-static"), 9, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path, comm := renamed(t, test.program, "")
			waitedConstructors(t, path, comm, test.calls, test.libcs)
		})
	}
	t.Run("script", func(t *testing.T) {
		comm := fmt.Sprintf("w%ds", os.Getpid())
		path := filepath.Join(t.TempDir(), comm)
		if err := os.WriteFile(path, []byte("#!"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		waitedConstructors(t, path, comm, 15, 0)
	})
	t.Run("long name", func(t *testing.T) {
		path, comm := renamed(t, script, "-a-name-of-many-bytes")
		waitedConstructors(t, path, comm, 15, 0)
	})
	if !testutil.Has32Bit() {
		return
	}
	t.Run("32-bit", func(t *testing.T) {
		testutil.Need32Bit(t)
		path, comm := renamed(t, testutil.Build(t, "launch", library("-m32")...), "n")
		waitedConstructors(t, path, comm, 15, 0)
	})
}

func waitedConstructors(t *testing.T, path, comm string, atLeast, libcs int) {
	ways := map[string][]string{"auto": nil}
	if libcs == 0 { // removing the probes takes seconds, longest with static programs
		ways["old kernel"] = oldKernel
	}
	for name, flags := range ways {
		t.Run(name, func(t *testing.T) {
			r := waitFor(t, comm, flags...)
			child := testutil.Spawn(t, path)
			report := child.Report()
			r.ends(cli.OK)
			r.says("lost: 0")
			if len(report.Done()) < atLeast {
				t.Errorf("only %d calls made", len(report.Done()))
			}
			equalCalls(t, r.waited(child.PID), report, libcs)
		})
	}
}

// If several processes come at once, one is traced and the others run.
func TestWaitTakesOne(t *testing.T) {
	path, comm := renamed(t, testutil.Build(t, "launch"), "")
	r := waitFor(t, comm)
	var children []*testutil.Child
	for range 6 {
		children = append(children, testutil.Spawn(t, path))
	}
	pid := 0
	for i, child := range children {
		report := child.Report()
		if i == 0 {
			r.ends(cli.OK)
			m := regexp.MustCompile(`tracing process (\d+)`).FindSubmatch(r.Stderr())
			if m == nil {
				t.Fatalf("no process was traced:\n%s", r.Stderr())
			}
			pid, _ = strconv.Atoi(string(m[1]))
		}
		if child.PID == pid {
			equalCalls(t, r.waited(pid), report, 0)
			pid = -1
		}
	}
	if pid != -1 {
		t.Errorf("process %d, which was traced, is none of those", pid)
	}
}

// The command does not trace a process that runs already, or one with a thread of that
// name. Ctrl-C ends the wait, and a later process is left alone.
func TestWaitForNobody(t *testing.T) {
	path, comm := renamed(t, testutil.Build(t, "alloc"), "")
	thread := testutil.BuildText(t, `#include <stdlib.h>
#include <sys/prctl.h>
int main(int argc, char **argv) { (void)argc; return prctl(PR_SET_NAME, argv[1]) || !malloc(1); }`)
	running := testutil.Spawn(t, path, "1", "10")
	running.Ready()
	r := waitFor(t, comm)
	running.Go()
	running.Succeed()
	testutil.Spawn(t, thread, comm).Succeed()
	r.Signal(os.Interrupt)
	r.ends(cli.Failed)
	r.says("no process named " + comm + " was started: there is no trace")
	later := testutil.Spawn(t, path, "1", "10")
	later.Ready()
	later.Go()
	later.Succeed()
}

// parent starts a program as shells with job control do, and prints how many stops of it
// waitpid reports.
const parent = `#define _GNU_SOURCE
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int status, stops = 0;
	pid_t pid = fork();
	(void)argc;
	if (!pid) {
		if (!freopen("/dev/null", "w", stdout))
			return 99;
		execv(argv[1], argv + 1);
		return 98;
	}
	while (waitpid(pid, &status, WUNTRACED | WCONTINUED) == pid && !WIFEXITED(status) && !WIFSIGNALED(status))
		stops += WIFSTOPPED(status);
	printf("%d", stops);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 97;
}`

// Parents that wait for stops must see none, unless the tracer warns that the process was
// stopped by a signal because it could not be held in time.
func TestWaitUnseen(t *testing.T) {
	program := testutil.BuildText(t, parent, "-O1")
	path, comm := renamed(t, testutil.Build(t, "launch"), "")
	const often = 20
	for i := range often {
		r := waitFor(t, comm, "-v", "--dry-run")
		child := testutil.Spawn(t, program, path)
		child.Succeed()
		r.ends(cli.OK)
		late := strings.Contains(string(r.Stderr()), "was stopped by a signal")
		if !late {
			r.says("is held")
		}
		if seen := string(child.Output()); seen != "0" && !late {
			t.Fatalf("round %d: the parent saw %s stops\n%s", i, seen, r.Stderr())
		}
		if !late && i > 0 {
			return
		}
	}
	if runtime.NumCPU() > 1 { // with one processor, this never happens
		t.Errorf("in none of %d rounds the process was held in time", often)
	}
}

// A process that strace traces cannot be held, and runs on.
func TestWaitTraced(t *testing.T) {
	testutil.NeedBPF(t)
	strace := testutil.Installed(t, "strace")
	path, comm := renamed(t, testutil.Build(t, "alloc"), "")
	r := waitFor(t, comm)
	child := testutil.Start(t, exec.Command(strace, "-f", "-o", "/dev/null", path, "1", "10"))
	r.ends(cli.Failed)
	r.says("cannot be held: process " + strconv.Itoa(child.PID) + " traces it already")
	child.Ready()
	child.Go()
	child.Succeed()
}

// A process that cannot be traced runs.
func TestWaitRefused(t *testing.T) {
	launch := testutil.Build(t, "launch")
	path, comm := renamed(t, testutil.BuildText(t, `#include <sys/syscall.h>
void _start(void)
{
#ifdef __x86_64__
	__asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(7) : "rcx", "r11", "memory");
#else
	register long x8 __asm__("x8") = SYS_exit_group, x0 __asm__("x0") = 7;
	__asm__ volatile("svc #0" : : "r"(x8), "r"(x0) : "memory");
#endif
	for (;;)
		;
}`, "-static", "-nostdlib"), "")
	r := waitFor(t, comm)
	if code := testutil.Spawn(t, path).Wait(); code != 7 {
		t.Errorf("it ends with %d", code)
	}
	r.ends(cli.Failed)
	r.says("has no known allocator")

	path, comm = renamed(t, launch, "d")
	r = waitFor(t, comm, "--dry-run")
	testutil.Spawn(t, path).Succeed()
	r.ends(cli.OK)
	if traces, _ := filepath.Glob(filepath.Join(r.dir, "rtrace-raw-*")); len(traces) > 0 {
		t.Errorf("there are traces: %v", traces)
	}
}

// If tracing is off at the start, the process is let go at once.
func TestWaitStartPaused(t *testing.T) {
	path, comm := renamed(t, testutil.Build(t, "alloc"), "")
	r := waitFor(t, comm, "--start-paused")
	child := testutil.Spawn(t, path, "1", "10")
	child.Ready() // the process runs, although nothing is traced
	r.Signal(syscall.SIGINT)
	r.ends(cli.OK)
	child.Go()
	child.Succeed()
}

// In a PID namespace the tracer ignores processes outside, and uses the namespace's numbers
// for processes inside.
func TestWaitInNamespace(t *testing.T) {
	testutil.NeedBPF(t)
	path, comm := renamed(t, testutil.Build(t, "launch"), "")
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	cmd := command(t, "--wait", "--comm", comm, "--format", "jsonl", "--ready-file", ready)
	inside := exec.Command("unshare", slices.Concat([]string{"--pid", "--fork", "--kill-child", "--mount-proc"}, cmd.Args)...)
	inside.Env, inside.Dir = cmd.Env, dir
	r := startIn(t, inside, dir, ready)
	testutil.Spawn(t, path).Succeed()
	child := spawnIn(t, fmt.Sprintf("/proc/%d/ns/pid_for_children", r.PID), path)
	report := child.Report()
	r.ends(cli.OK)
	equalCalls(t, r.waited(report.PID), report, 0)
	if report.PID == child.PID {
		t.Errorf("process %d has no number of its own in there", report.PID)
	}
}

// spawnIn starts a program in a PID namespace.
func spawnIn(t *testing.T, namespace, program string) *testutil.Child {
	t.Helper()
	runtime.LockOSThread() // never unlocked, so that the thread ends with the test
	f, err := os.Open(namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWPID); err != nil {
		t.Fatal(err)
	}
	return testutil.Spawn(t, program)
}

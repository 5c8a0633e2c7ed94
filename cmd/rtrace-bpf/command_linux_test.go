package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/recording"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// oldKernel selects the mechanisms of a kernel without uprobe_multi and attach cookies.
var oldKernel = []string{"--mechanism", "perf", "--sites", "address", "--state", "hash"}

// kernelWays returns the flags with which a test runs. oldKernel is one of them only in a
// sweep, because the kernel removes its probes slowly.
func kernelWays(t *testing.T) map[string][]string {
	t.Helper()
	ways := map[string][]string{"auto": nil}
	if testutil.Sweep(t) {
		ways["old kernel"] = oldKernel
	}
	return ways
}

// launching is a command that rtrace-bpf starts and traces.
type launching struct {
	*testutil.Child
	t   *testing.T
	dir string
}

// launchCommand runs the command in its own folder.
func launchCommand(t *testing.T, flags []string, argv ...string) *launching {
	t.Helper()
	testutil.NeedBPF(t)
	l := &launching{t: t, dir: t.TempDir()}
	l.Child = testutil.Start(t, l.command(flags, argv...))
	return l
}

func (l *launching) command(flags []string, argv ...string) *exec.Cmd {
	cmd := command(l.t, slices.Concat([]string{"--format", "jsonl"}, flags, []string{"--"}, argv)...)
	cmd.Dir = l.dir
	return cmd
}

// ends checks the exit code.
func (l *launching) ends(code int) {
	l.t.Helper()
	if got := l.Wait(); got != code {
		l.t.Errorf("exit code %d, want %d\n%s", got, code, l.Stderr())
	}
}

// Standard error must contain the text.
func (l *launching) says(text string) {
	l.t.Helper()
	if !strings.Contains(string(l.Stderr()), text) {
		l.t.Errorf("standard error without %q:\n%s", text, l.Stderr())
	}
}

// records reads the only trace.
func (l *launching) records() []*trace.Record {
	l.t.Helper()
	return load(l.t, l.trace())
}

// trace returns the path of the trace.
func (l *launching) trace() string {
	l.t.Helper()
	all, err := filepath.Glob(filepath.Join(l.dir, "rtrace-raw-*-0.jsonl"))
	if err != nil || len(all) != 1 {
		l.t.Fatalf("traces in the directory: %v, %v", all, err)
	}
	return all[0]
}

// mostOfLibc is how many calls a static glibc makes at most before any constructor, to find
// the folders of its libraries (_dl_non_dynamic_init).
const mostOfLibc = 8

// equalCalls fails the test unless a trace has exactly the calls that the program logged.
// If another program executed this one, the calls after the last exec count. At most libcs
// calls of the C library may precede the others.
func equalCalls(t *testing.T, records []*trace.Record, report *testutil.Report, libcs int) {
	t.Helper()
	var got []testutil.Call
	for _, rec := range records {
		switch rec.Kind {
		case trace.KindLost:
			t.Errorf("%d lost: %s", rec.Lost.Count, rec.Lost.Reason)
		case trace.KindExec:
			got = nil
		case trace.KindCall:
			got = append(got, callOf(rec))
		}
	}
	want := report.Done()
	if len(want) == 0 {
		t.Fatal("the program has logged nothing")
	}
	if more := len(got) - len(want); more > 0 && more <= libcs {
		got = got[more:]
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d calls in the trace:\n%+v\n%d made:\n%+v", len(got), got, len(want), want)
	}
}

// callOf returns a call of a trace in the form in which programs log it.
func callOf(rec *trace.Record) testutil.Call {
	c := testutil.Call{TID: int(rec.TID), Op: rec.Call.Op.String(), Function: rec.Call.Function, Ptr: rec.Call.ID, Old: rec.Call.OldID, Size: rec.Call.Size}
	if rec.Call.Op == trace.OpFree {
		c.Ptr, c.Old = 0, rec.Call.ID
	}
	return c
}

// The trace has the calls of the program that the command executes, be it a shell or a
// script.
func TestLaunchExec(t *testing.T) {
	program := testutil.Build(t, "launch")
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh -e\nexec \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, argv := range map[string][]string{
		"shell":  {"sh", "-c", "exec " + program},
		"script": {script, program},
		"twice":  {script, script, "env", "X=1", program},
	} {
		t.Run(name, func(t *testing.T) {
			l := launchCommand(t, nil, argv...)
			l.ends(0)
			equalCalls(t, l.records(), l.Report(), 0)
		})
	}
}

// The exit status is that of the command, or reports why there is none.
func TestLaunchStatus(t *testing.T) {
	testutil.NeedBPF(t)
	dir := t.TempDir()
	mark := filepath.Join(dir, "ran")
	text := filepath.Join(dir, "text")
	for path, mode := range map[string]os.FileMode{text: 0o600, filepath.Join(dir, "noise"): 0o700} {
		if err := os.WriteFile(path, []byte("no program\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	silent := testutil.BuildText(t, "void _start(void) { for (;;) __builtin_trap(); }", "-static", "-nostdlib")
	touch := []string{"sh", "-c", "echo > " + mark}
	for name, test := range map[string]struct {
		flags []string
		argv  []string
		code  int
		says  string
	}{
		"success":         {nil, []string{"true"}, 0, "lost: 0"},
		"failure":         {nil, []string{"sh", "-c", "exit 7"}, 7, "lost: 0"},
		"3 is its own":    {nil, []string{"sh", "-c", "exit 3"}, 3, "lost: 0"},
		"killed":          {nil, []string{"sh", "-c", "kill -9 $$"}, 137, "lost: 0"},
		"aborted":         {nil, []string{"sh", "-c", "kill -6 $$"}, 134, "lost: 0"},
		"strict":          {[]string{"--strict"}, []string{"sh", "-c", "exit 9"}, 9, "lost: 0"},
		"not found":       {nil, []string{"no such command"}, 127, "no such command: command not found"},
		"no such path":    {nil, []string{"/no/such"}, 127, "/no/such: command not found"},
		"not executable":  {nil, []string{text}, 126, "cannot be executed: permission denied"},
		"no program":      {nil, []string{filepath.Join(dir, "noise")}, 126, "exec format error"},
		"folder":          {nil, []string{dir}, 126, "cannot be executed"},
		"no output":       {[]string{"-o", filepath.Join(dir, "no", "such")}, touch, 125, "no such file"},
		"no allocator":    {nil, []string{silent}, 125, "has no"},
		"wrong flag":      {[]string{"--nope"}, touch, 125, "unknown flag"},
		"nothing":         {nil, nil, 125, "the command is missing: write it after --"},
		"process as well": {[]string{"-p", "1"}, touch, 125, "a command is traced alone"},
		"wait":            {[]string{"--wait", "--comm", "x"}, touch, 125, "traced from its start without it"},
		"dotnet":          {[]string{"--dotnet"}, touch, 125, "needs a running process"},
		"standard output": {[]string{"-o", "-"}, touch, 125, "standard output is the command's"},
		"dry run":         {[]string{"--dry-run"}, touch, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := launchCommand(t, test.flags, test.argv...)
			l.ends(test.code)
			l.says(test.says)
			if _, err := os.Stat(mark); err == nil {
				t.Error("the command ran")
			}
		})
	}
}

// A command that ends in the loader never had an allocator.
func TestLaunchWithoutItsLibrary(t *testing.T) {
	library := testutil.Build(t, "launch", "-DLIBRARY", "-shared", "-fPIC")
	whole, err := os.ReadFile(testutil.Build(t, "launch", "-DNEEDS_LIBRARY", library))
	if err != nil {
		t.Fatal(err)
	}
	// The program looks for the library next to itself.
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, whole, 0o700); err != nil {
		t.Fatal(err)
	}
	l := launchCommand(t, nil, program)
	l.ends(127) // the loader's
	l.says("the command ended before its libraries were mapped: there is no trace")
	l.says("cannot open shared object file")
}

// The command inherits the environment, directory and streams of rtrace-bpf.
func TestLaunchSurroundings(t *testing.T) {
	const show = "grep -E 'Sig(Blk|Ign|Cgt)|NoNewPrivs|Uid' /proc/self/status; nice; ulimit -n; ulimit -l; pwd; ls /proc/self/fd"
	l := launchCommand(t, nil, "sh", "-c", show)
	l.ends(0)
	alone := exec.Command("sh", "-c", show)
	alone.Dir = l.dir
	child := testutil.Start(t, alone)
	child.Succeed()
	if got, want := string(l.Output()), string(child.Output()); got != want {
		t.Errorf("it has\n%s\nalone\n%s", got, want)
	}
}

// counter counts SIGINT, and ends with how many there were when its gate is opened.
const counter = `#include <signal.h>
#include <unistd.h>
#include <errno.h>
static volatile int n;
static void count(int sig) { (void)sig; n++; }
int main(void)
{
	char c;
	struct sigaction a = { .sa_handler = count };
	sigaction(SIGINT, &a, 0);
	if (write(3, "ready\n", 6) != 6)
		return 98;
	while (read(4, &c, 1) < 0 && errno == EINTR)
		;
	return n;
}`

// A terminal's SIGINT goes to rtrace-bpf and the command. The command gets it once, and
// tracing continues until the command ends.
func TestLaunchInterrupted(t *testing.T) {
	testutil.NeedBPF(t)
	l := &launching{t: t, dir: t.TempDir()}
	cmd := l.command(nil, testutil.BuildText(t, counter))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	l.Child = testutil.Start(t, cmd)
	l.Ready()
	if err := syscall.Kill(-l.PID, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	l.Go()
	l.ends(1)
	records := l.records()
	if last := records[len(records)-2]; last.Kind != trace.KindExit || !last.Exit.Process {
		t.Errorf("the trace does not end with the command but with a %s", last.Kind)
	}
}

// The first SIGTERM ends the trace and is passed on to the command; the second ends the
// wait for the command.
func TestLaunchTerminated(t *testing.T) {
	// A command that reports that it got the signal, and continues.
	stubborn := testutil.BuildText(t, strings.NewReplacer("SIGINT", "SIGTERM", "n++;", `n += write(3, "ready\n", 6);`).Replace(counter))
	l := launchCommand(t, nil, testutil.BuildText(t, counter))
	l.Ready()
	l.Signal(syscall.SIGTERM)
	l.ends(143)
	l.records()
	for _, when := range []string{"at once", "after the trace"} {
		t.Run(when, func(t *testing.T) { launchTerminatedTwice(t, stubborn, when == "at once") })
	}
}

// launchTerminatedTwice sends a second SIGTERM to rtrace-bpf, which waits for a command
// that the first one does not end. It sends it immediately after the command gets the first
// one, or after the summary of the trace. In the first case the trace may have its end or
// not. Standard error must report which.
func launchTerminatedTwice(t *testing.T, stubborn string, atOnce bool) {
	t.Helper()
	l := &launching{t: t, dir: t.TempDir()}
	cmd := l.command(nil, stubborn)
	read, write := pipe(t)
	defer read.Close()
	cmd.Stdout, cmd.Stderr = write, write
	l.Child = testutil.Start(t, cmd)
	write.Close()
	l.Ready()
	l.Signal(syscall.SIGTERM)
	l.Ready()
	lines, whole, text := bufio.NewScanner(read), false, ""
	next := func() bool {
		more := lines.Scan()
		text += lines.Text() + "\n"
		whole = whole || strings.HasSuffix(lines.Text(), "  lost: 0")
		return more
	}
	for !atOnce && !whole && next() {
	}
	l.Signal(syscall.SIGTERM)
	l.ends(125)
	l.Close() // so the command ends, and with it what it may print
	for next() {
	}
	if !strings.Contains(text, errLeft.Error()) || strings.Contains(text, recording.ErrHurried.Error()) == whole || !whole && !atOnce {
		t.Errorf("it prints\n%s", text)
	}
	if whole {
		l.records()
	} else {
		loadEnded(t, l.trace())
	}
}

// Children, even those of vfork, and a daemon that outlives the command and the trace, run
// into no breakpoint.
func TestLaunchChildren(t *testing.T) {
	daemon := testutil.BuildText(t, `#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	int i;
	char c;
	free(malloc(10));
	if (fork())
		return 3;
	if (write(3, "ready\n", 6) != 6 || read(4, &c, 1) != 1)
		return 98;
	for (i = 0; i < 1000; i++)
		free(malloc(i));
	return write(1, "done\n", 5) != 5;
}`)
	l := launchCommand(t, nil, "sh", "-c", "for i in 1 2 3 4 5; do /bin/true || exit 9; done; exit 5")
	l.ends(5)

	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	l = &launching{t: t, dir: t.TempDir()}
	cmd := l.command([]string{"-q"}, daemon)
	cmd.Stdout = write
	l.Child = testutil.Start(t, cmd)
	write.Close()
	l.Ready()
	l.ends(3)
	l.Go()
	var said [16]byte
	if n, err := read.Read(said[:]); err != nil || string(said[:n]) != "done\n" {
		t.Errorf("the daemon says %q, %v", said[:n], err)
	}
}

// A program with another user's rights has the same rights under the tracer.
func TestLaunchSetuid(t *testing.T) {
	testutil.NeedBPF(t)
	text, err := os.ReadFile(testutil.BuildText(t, `#include <stdio.h>
#include <unistd.h>
int main(void) { printf("%d %d", getuid(), geteuid()); return 0; }`))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "setuid")
	if err := os.WriteFile(program, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(program, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(program, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	alone, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	l := launchCommand(t, nil, program)
	l.ends(0)
	if got := string(l.Output()); got != string(alone) || got != fmt.Sprintf("%d 65534", os.Getuid()) {
		t.Errorf("its users are %s, alone %s", got, alone)
	}
	if n := count(l.records(), "malloc"); n == 0 {
		t.Error("no calls in the trace")
	}
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// A program with another allocator than the one before it in the process has its own trace,
// which begins with its first call.
func TestFollowOtherAllocator(t *testing.T) {
	testutil.NeedBPF(t)
	type program struct {
		flags []string
		libcs int
	}
	programs := map[string]program{
		"static":      {[]string{"-static"}, mostOfLibc},
		"musl":        {[]string{testutil.Musl}, 64 /* its loader's */},
		"musl static": {[]string{testutil.Musl, "-static"}, 0},
	}
	if testutil.Has32Bit() {
		programs["32-bit"] = program{[]string{"-m32"}, 0}
	}
	for name, test := range programs {
		t.Run(name, func(t *testing.T) {
			if slices.Contains(test.flags, "-m32") {
				testutil.Need32Bit(t)
			}
			program, logs := testutil.Build(t, "family", test.flags...), t.TempDir()
			l := launchCommand(t, []string{"-f"}, "sh", "-c", `"$0" "$1" leaf; exit 6`, program, logs)
			l.ends(6)
			l.says("lost: 0")
			all := logsOf(t, logs)
			if len(all) != 1 {
				t.Fatalf("%d processes have logged, want 1", len(all))
			}
			for pid, reports := range all {
				got := programsOf(t, l.dir, pid)
				if len(got) == 0 || len(reports) != 1 {
					t.Fatalf("%d programs, %d reports", len(got), len(reports))
				}
				calls, want := ownCalls(got[len(got)-1], reports[0].Done(), test.libcs), reports[0].Done()
				if !slices.Equal(calls, want) {
					t.Errorf("%d calls in the trace:\n%+v\n%d made:\n%+v", len(calls), calls, len(want), want)
				}
				last := load(t, filepath.Join(l.dir, fmt.Sprintf("rtrace-raw-%d-1.jsonl", pid)))
				if i := slices.IndexFunc(last, func(r *trace.Record) bool { return r.Kind == trace.KindProcess }); i < 0 || last[i].Process.Path != program {
					t.Errorf("the second trace is not of %s", program)
				}
			}
		})
	}
}

// servant makes processes in the ways that Python offers, and prints their numbers, each with a number
// of calls of malloc that it makes at least: str(i) of two digits needs a block of its own, and the start
// of an interpreter many more than 1000.
const servant = `
import collections, multiprocessing, os, subprocess, sys

def work(n):
    return os.getpid(), n, sum(len(str(i)) for i in range(n))

if __name__ == "__main__":
    calls = collections.Counter()
    for way in "fork", "spawn":
        with multiprocessing.get_context(way).Pool(2) as pool:
            for pid, n, digits in pool.map(work, [100, 200, 300]):
                assert digits in (190, 490, 790), digits
                calls[pid] += n - 10
    for i in range(2):
        p = subprocess.Popen([sys.executable, "-c", "print('x' * 10)"], stdout=subprocess.PIPE)
        assert p.communicate()[0] == b"x" * 10 + b"\n" and p.returncode == 0
        calls[p.pid] = 1000
    assert subprocess.call("kill -9 $$", shell=True) == -9
    assert os.system("exit 3") == 3 << 8
    calls[os.getpid()] = 1000
    print(*(f"{pid}:{n}" for pid, n in calls.items()))
`

// TestFollowPython checks that the processes that Python makes, of its pools and of other
// programs, are traced, and that Python works as without tracing.
func TestFollowPython(t *testing.T) {
	python := testutil.Installed(t, "/usr/bin/python3")
	testutil.NeedBPF(t)
	script := filepath.Join(t.TempDir(), "servant.py")
	if err := os.WriteFile(script, []byte(servant), 0o600); err != nil {
		t.Fatal(err)
	}
	alone, err := exec.Command(python, script).CombinedOutput()
	if err != nil {
		t.Fatalf("alone: %v\n%s", err, alone)
	}
	t.Setenv("PYTHONMALLOC", "malloc") // Python otherwise uses its own allocator
	l := launchCommand(t, []string{"-f", "--ring-size", "16M"}, python, script)
	l.ends(0)
	l.says("lost: 0")
	pids := strings.Fields(string(l.Output()))
	if len(pids) < 5 {
		t.Fatalf("it prints %q", l.Output())
	}
	traced := tracedIn(t, l.dir)
	if len(traced) < len(pids)+2 {
		t.Errorf("%d traces, and %d processes in addition to those of shells", len(traced), len(pids))
	}
	for _, text := range pids {
		var pid, least int
		if _, err := fmt.Sscanf(text, "%d:%d", &pid, &least); err != nil || !slices.Contains(traced, pid) {
			t.Errorf("process %s has no trace", text)
			continue
		}
		calls := 0
		for _, program := range programsOf(t, l.dir, pid) {
			calls += len(program)
		}
		if calls < least {
			t.Errorf("process %d: %d calls, want %d or more", pid, calls, least)
		}
	}
}

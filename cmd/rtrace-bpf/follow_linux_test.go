package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// logsOf reads the logs of the processes of the program family, by process.
func logsOf(t *testing.T, dir string) map[int][]*testutil.Report {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[int][]*testutil.Report{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if all[pid], err = testutil.ParseReports(text); err != nil {
			t.Fatalf("process %d: %v", pid, err)
		}
	}
	return all
}

// programsOf returns the calls in the traces of a process, separately for each program that
// it executed; programs without calls are left out.
func programsOf(t *testing.T, dir string, pid int) (all [][]testutil.Call) {
	t.Helper()
	for n := 0; ; n++ {
		path := filepath.Join(dir, fmt.Sprintf("rtrace-raw-%d-%d.jsonl", pid, n))
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			if n == 0 {
				t.Errorf("no trace of process %d", pid)
			}
			return all
		}
		records := load(t, path)
		if last := records[len(records)-1]; last.Kind != trace.KindEnd {
			t.Errorf("%s ends with %s", path, last.Kind)
		}
		program := []testutil.Call{}
		keep := func() {
			if len(program) > 0 {
				all = append(all, program)
			}
			program = nil
		}
		for _, rec := range records {
			switch rec.Kind {
			case trace.KindLost:
				t.Errorf("process %d: %d lost: %s", pid, rec.Lost.Count, rec.Lost.Reason)
			case trace.KindExec:
				keep()
			case trace.KindCall:
				if rec.PID != int32(pid) {
					t.Fatalf("a call of process %d in %s", rec.PID, path)
				}
				program = append(program, callOf(rec))
			}
		}
		keep()
	}
}

// equalFamily fails the test unless the traces have exactly the calls that the processes
// logged. The main process may make up to more calls of the C library in addition. The
// other processes may have executed up to others other programs before the one that logs.
func equalFamily(t *testing.T, traces, logs string, main, more, others int) {
	t.Helper()
	for pid, reports := range logsOf(t, logs) {
		got := programsOf(t, traces, pid)
		var want [][]testutil.Call
		for _, r := range reports {
			if calls := r.Done(); len(calls) > 0 {
				want = append(want, calls)
			}
		}
		if before := len(got) - len(want); before > 0 && before <= others && pid != main {
			got = got[before:]
		}
		if len(got) != len(want) {
			t.Errorf("process %d: calls of %d programs in the traces, %d have made some", pid, len(got), len(want))
			continue
		}
		for i := range want {
			if pid == main {
				got[i] = ownCalls(got[i], want[i], more)
			}
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("process %d, program %d: %d calls in the trace:\n%+v\n%d made:\n%+v", pid, i, len(got[i]), got[i], len(want[i]), want[i])
			}
		}
	}
}

// ownCalls returns the part of calls that equals others, if at most more other calls
// surround it. Otherwise it returns calls.
func ownCalls(calls, others []testutil.Call, more int) []testutil.Call {
	for at := 0; at <= more && at+len(others) <= len(calls) && len(calls)-len(others) <= more; at++ {
		if part := calls[at : at+len(others)]; slices.Equal(part, others) {
			return part
		}
	}
	return calls
}

// TestFollowForks checks that every process that a command makes, in whatever way, has its
// own trace with exactly its calls.
func TestFollowForks(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "family")
	for _, test := range []struct {
		way            string
		flags          []string
		logged, others int // processes that log their calls, and other processes
		more           int // calls of the C library in the main one, for threads
		second         int // processes with a second trace, because a thread executed the program
	}{
		{way: "fork", logged: 2},
		{way: "fork", flags: oldKernel, logged: 2},
		{way: "generations", logged: 5},
		{way: "orphan", logged: 3},
		{way: "killed", logged: 2},
		{way: "vfork", logged: 2},
		{way: "vfork", flags: oldKernel, logged: 2},
		{way: "spawn", logged: 2},
		{way: "system", logged: 2, others: 1},
		{way: "threads", logged: 4, more: 3},
		{way: "signals", logged: 2},
		{way: "execs", logged: 1, more: 1, second: 1},
	} {
		name := test.way
		if test.flags != nil {
			name += " on an old kernel"
		}
		t.Run(name, func(t *testing.T) {
			logs := t.TempDir()
			l := launchCommand(t, slices.Concat([]string{"--follow-forks"}, test.flags), program, logs, test.way)
			l.Ready()
			l.Go()
			l.ends(0)
			l.says("lost: 0")
			all := logsOf(t, logs)
			if len(all) != test.logged {
				t.Errorf("%d processes have logged, want %d", len(all), test.logged)
			}
			traces, err := filepath.Glob(filepath.Join(l.dir, "rtrace-raw-*-0.jsonl"))
			if err != nil || len(traces) != test.logged+test.others {
				t.Errorf("traces: %v, %v", traces, err)
			}
			// A process that executes a program with the same allocator has one trace.
			if more, err := filepath.Glob(filepath.Join(l.dir, "rtrace-raw-*-1.jsonl")); err != nil || len(more) != test.second {
				t.Errorf("second traces: %v, %v; want %d", more, err, test.second)
			}
			// The command comes first. Its PID need not be the smallest: PIDs begin again at some time.
			m := regexp.MustCompile(`tracing process (\d+)`).FindSubmatch(l.Stderr())
			if m == nil {
				t.Fatalf("the command's process is not named: %s", l.Stderr())
			}
			main, err := strconv.Atoi(string(m[1]))
			if err != nil || all[main] == nil {
				t.Fatalf("process %s has no log: %v", m[1], err)
			}
			equalFamily(t, l.dir, logs, main, test.more, test.others)
		})
	}
}

// TestFollowRunning does the same with a process that runs already, with threads.
func TestFollowRunning(t *testing.T) {
	for _, way := range []string{"threads", "spawn"} {
		t.Run(way, func(t *testing.T) {
			logs := t.TempDir()
			child := waiting(t, "family", logs, way)
			r := startOn(t, "-f", "--format", "jsonl", "-p", fmt.Sprint(child.PID))
			child.Go()
			child.Succeed()
			r.ends(cli.OK)
			r.says("lost: 0")
			equalFamily(t, r.dir, logs, child.PID, 3, 0)
		})
	}
}

// tracedIn returns the processes that have traces in a folder.
func tracedIn(t *testing.T, dir string) (pids []int) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "rtrace-raw-*-0.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(path), "rtrace-raw-%d-0.jsonl", &pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// TestFollowShell checks that each of several short processes that a shell starts in turn
// has a trace of the program that it executed.
func TestFollowShell(t *testing.T) {
	const rounds = 6
	l := launchCommand(t, []string{"-m"}, "sh", "-c", "for i in 1 2 3 4 5 6; do /bin/echo $i >/dev/null; done; exit 5")
	l.ends(5)
	l.says("lost: 0")
	echoes := 0
	for _, pid := range tracedIn(t, l.dir) {
		records := load(t, filepath.Join(l.dir, fmt.Sprintf("rtrace-raw-%d-0.jsonl", pid)))
		for i, rec := range records {
			if rec.Kind == trace.KindExec && rec.Exec.Name == "echo" && count(records[i:], "malloc") > 0 {
				echoes++
			}
		}
	}
	if echoes != rounds {
		t.Errorf("%d traces of echo, want %d", echoes, rounds)
	}
	l.says(fmt.Sprintf("%d processes, ", rounds+1))
}

// TestFollowTooMany checks that the command reports processes that run untraced because of
// --max-processes.
func TestFollowTooMany(t *testing.T) {
	logs := t.TempDir()
	l := launchCommand(t, []string{"-f", "--max-processes", "2"}, testutil.Build(t, "family"), logs, "generations")
	l.Ready()
	l.Go()
	l.ends(0)
	l.says("and the processes that it starts run untraced: 2 processes are traced already, see --max-processes")
	l.says("1 processes ran untraced, because 2 were traced already")
	if all := logsOf(t, logs); len(all) != 5 {
		t.Errorf("%d processes have logged, want 5", len(all))
	}
	for _, pid := range tracedIn(t, l.dir) {
		got, reports := programsOf(t, l.dir, pid), logsOf(t, logs)[pid]
		if len(got) != 1 || len(reports) != 1 || !slices.Equal(got[0], reports[0].Done()) {
			t.Errorf("process %d: %d programs in the traces, %d reports, or they differ", pid, len(got), len(reports))
		}
	}
	if n := len(tracedIn(t, l.dir)); n != 2 {
		t.Errorf("%d traces, want 2", n)
	}
}

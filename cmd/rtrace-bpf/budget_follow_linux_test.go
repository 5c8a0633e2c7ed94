package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// Each process of a family is recorded in windows of its own. With a budget of 100 %, all calls of
// one that waits most of the time are in windows that stand for themselves, so the sums are what
// the process has logged, from its first call, also after exec. Where probes were too expensive, as on
// a busy machine, the sums are bounds.
func TestBudgetFollows(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "family")
	for way, logged := range map[string]int{"fork": 2, "spawn": 2, "execs": 1} {
		t.Run(way, func(t *testing.T) {
			logs := t.TempDir()
			l := launchCommand(t, []string{"--follow-forks", "--budget", "100%"}, program, logs, way)
			l.Ready()
			l.Go()
			l.ends(0)
			all := logsOf(t, logs)
			if len(all) != logged {
				t.Errorf("%d processes have logged, want %d", len(all), logged)
			}
			for pid, reports := range all {
				made := 0.0
				for _, r := range reports {
					made += float64(r.Functions["malloc"].Calls)
				}
				traces, err := filepath.Glob(filepath.Join(l.dir, fmt.Sprintf("rtrace-raw-%d-*.jsonl", pid)))
				if err != nil || len(traces) == 0 {
					t.Fatalf("traces of process %d: %v, %v", pid, traces, err)
				}
				low, high, bounded := 0.0, 0.0, false
				for _, path := range traces {
					sums, cost := estimated(t, path)
					if cost == nil {
						t.Errorf("%s has no costs", path)
					}
					e := sums["malloc"]
					low, high = low+e.Low, high+e.High
					bounded = bounded || e.AtLeast || slices.ContainsFunc(load(t, path), func(r *trace.Record) bool {
						return r.Kind == trace.KindWindow && r.Window.Weight != 1
					})
				}
				// The C library makes a call in each thread that a program starts.
				if more := 2 * float64(len(reports)); low > made+more || !bounded && high < made {
					t.Errorf("process %d made %v calls of malloc, estimated %v to %v", pid, made, low, high)
				}
			}
		})
	}
}

// forks is a program whose main process and two children allocate until SIGTERM.
const forks = `#include "prog.h"
#include <signal.h>
#include <sys/wait.h>
static volatile sig_atomic_t over;
static void stop(int s) { (void)s; over = 1; }
int main(void)
{
	pid_t children[2];
	int i;

	signal(SIGTERM, stop);
	gate();
	for (i = 0; i < 2; i++)
		if ((children[i] = fork()) == 0)
			break;
	while (!over) {
		volatile unsigned long sum = 0;
		unsigned long j;

		free(malloc(100));
		for (j = 0; j < 20000; j++)
			sum += j;
	}
	if (i < 2)
		_exit(0);
	for (i = 0; i < 2; i++) {
		kill(children[i], SIGTERM);
		waitpid(children[i], NULL, 0);
	}
	return 0;
}
`

// madeBy returns the processes that the main thread of a process has made.
func madeBy(t *testing.T, pid int) (all []int) {
	t.Helper()
	for field := range strings.FieldsSeq(childrenOf(t, pid)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, child)
	}
	return all
}

// Between the windows of a process no probe is in it, whatever it has inherited, and also while another
// one of its family is in a window. Each of them has windows, and times without a probe. At the end
// none is left.
func TestBudgetOfAFamily(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.Extra(t, "it waits for windows of three processes, which come when the budget allows")
	child := testutil.Spawn(t, testutil.BuildText(t, forks, "-I"+filepath.Dir(testutil.Source(t, "family"))))
	child.Ready()
	dir := t.TempDir() + "/traces/"
	r := start(t, child, "--follow-forks", "--budget", "50%", "-o", dir)
	child.Go()
	defer testutil.Unstuck(t, child.PID)()
	var family []int
	for len(family) < 3 {
		family = append([]int{child.PID}, madeBy(t, child.PID)...)
	}
	for _, pid := range family {
		for _, out := range []bool{true, false, true} { // its first window has closed, another one opens and closes
			for (len(testutil.CodeOf(t, pid).Changed) == 0) != out {
			}
		}
	}
	r.Signal(unix.SIGINT)
	r.ends(cli.OK)
	for _, pid := range family {
		if changed := testutil.CodeOf(t, pid).Changed; len(changed) > 0 {
			t.Errorf("probes are left in process %d: %v", pid, changed)
		}
	}
	child.Signal(unix.SIGTERM)
	child.Succeed()
	for _, pid := range family {
		all, cost := estimated(t, filepath.Join(dir, fmt.Sprintf("rtrace-raw-%d-0.jsonl", pid)))
		if len(all) == 0 || cost == nil {
			t.Errorf("process %d: %+v, cost %+v", pid, all, cost)
		}
	}
}

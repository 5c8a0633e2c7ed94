package main

import (
	"fmt"
	"os"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// siblings is a program in which each process forks in the first two of three phases. In
// each phase all processes make calls with a size that shows the phase. Each process waits
// for a byte before each phase, and then until all others have theirs, so that no process
// takes the byte of another.
func siblings(t *testing.T) string {
	t.Helper()
	return testutil.BuildText(t, `#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static atomic_int *gone;
static int gate(int phase)
{
	char c;
	if (write(3, "ready\n", 6) != 6 || read(4, &c, 1) != 1)
		return 0;
	atomic_fetch_add(&gone[phase], 1);
	while (atomic_load(&gone[phase]) < 1 << phase)
		sched_yield();
	return 1;
}
static void calls(size_t phase)
{
	int i;
	for (i = 0; i < 10; i++)
		free(malloc(1000 + phase));
}
int main(void)
{
	int phase, child, status;
	gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (gone == MAP_FAILED)
		return 97;
	for (phase = 0; phase < 3; phase++) {
		if (!gate(phase))
			return 98;
		if (phase < 2 && fork() < 0)
			return 99;
		calls((size_t)phase);
	}
	while ((child = wait(&status)) > 0)
		if (status != 0)
			return 1;
	return 0;
}`)
}

// TestFollowToggled checks that followed processes and their new children run untraced
// while tracing is off, and that all processes have traces after it is switched on again.
func TestFollowToggled(t *testing.T) {
	child := testutil.Spawn(t, siblings(t))
	child.Ready()
	r := startOn(t, "-f", "--format", "jsonl", "-p", fmt.Sprint(child.PID))
	toggle := func() {
		t.Helper()
		if got := finish(t, command(t, "--toggle", fmt.Sprint(child.PID))); got.code != int(cli.OK) {
			t.Fatalf("exit code %d\n%s%s", got.code, got.stderr, r.Stderr())
		}
	}
	next := func(processes int) {
		t.Helper()
		for range processes {
			child.Go()
		}
	}
	ready := func(processes int) {
		t.Helper()
		for range processes {
			child.Ready()
		}
	}
	next(1) // a child, traced
	ready(2)
	toggle()
	next(2) // two more, untraced
	ready(4)
	toggle()
	next(4)
	child.Succeed()
	r.ends(cli.OK)
	r.says("lost: 0")
	traced := map[string]int{} // how many processes have traces with the calls of these phases
	for _, pid := range tracedIn(t, r.dir) {
		var windows [][]int
		for n := 0; ; n++ {
			path := numbered(r.dir, pid, n) + ".jsonl"
			if _, err := os.Stat(path); err != nil {
				break
			}
			made := make([]int, 3)
			for _, rec := range load(t, path) {
				if rec.Kind != trace.KindCall {
					continue
				}
				if rec.Call.Op == trace.OpAlloc {
					made[rec.Call.Size-1000]++
				}
			}
			windows = append(windows, made)
		}
		traced[fmt.Sprint(windows)]++
	}
	want := map[string]int{"[[10 0 0] [0 0 10]]": 2, "[[0 0 10]]": 2}
	if fmt.Sprint(traced) != fmt.Sprint(want) {
		t.Errorf("windows of the processes: %v, want %v", traced, want)
	}
}

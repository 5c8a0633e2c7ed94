package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// twins is a program that forks when it is first let go. Both processes make 20 calls,
// report that they are ready, and make 2000 more when a byte lets them go.
func twins(t *testing.T) string {
	t.Helper()
	return testutil.BuildText(t, `#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	char c;
	int pid, i;
	if (write(3, "ready\n", 6) != 6 || read(4, &c, 1) != 1)
		return 98;
	pid = fork();
	for (i = 0; i < 10; i++)
		free(malloc(i + 1));
	if (write(3, "ready\n", 6) != 6 || read(4, &c, 1) != 1)
		return 98;
	for (i = 0; i < 1000; i++)
		free(malloc(i + 1));
	if (pid && (wait(&i) != pid || i != 0))
		return 1;
	return 0;
}`)
}

// TestFollowEnds checks that all traces are complete after Ctrl-C, and that all processes
// go on, even if the tracer is killed.
func TestFollowEnds(t *testing.T) {
	for name, sig := range map[string]os.Signal{"interrupted": os.Interrupt, "killed": os.Kill} {
		t.Run(name, func(t *testing.T) {
			child := testutil.Spawn(t, twins(t))
			child.Ready()
			r := startOn(t, "-f", "--format", "jsonl", "-p", fmt.Sprint(child.PID))
			child.Go()
			child.Ready()
			child.Ready()
			r.Signal(sig)
			code := r.Wait()
			child.Go()
			child.Go()
			child.Succeed()
			if sig == os.Kill {
				return
			}
			if code != 0 {
				t.Errorf("exit code %d\n%s", code, r.Stderr())
			}
			all := tracedIn(t, r.dir)
			if len(all) != 2 {
				t.Errorf("traces of %v", all)
			}
			for _, pid := range all {
				if got := programsOf(t, r.dir, pid); len(got) != 1 || len(got[0]) != 20 {
					t.Errorf("process %d has made %v", pid, got)
				}
			}
		})
	}
}

// A process that a debugger holds cannot be followed; the command reports that in one line.
func TestFollowTraced(t *testing.T) {
	strace := testutil.Installed(t, "strace")
	testutil.NeedBPF(t)
	child := waiting(t, "loop", "1")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := exec.Command(strace, "-f", "-o", "/dev/null", "-e", "trace=!all", "-p", fmt.Sprint(child.PID))
	cmd.Stderr = write
	testutil.Start(t, cmd)
	write.Close()
	if line, err := bufio.NewReader(read).ReadString('\n'); err != nil || !strings.Contains(line, "attached") {
		t.Fatalf("strace prints %q, %v", line, err)
	}
	got := finish(t, command(t, "-f", "-p", fmt.Sprint(child.PID), "-o", t.TempDir()))
	if got.code != int(cli.Failed) || strings.Count(got.stderr, "\n") != 1 ||
		!strings.Contains(got.stderr, fmt.Sprintf("follow process %d: it is held by ptrace already, by strace (process ", child.PID)) {
		t.Errorf("exit code %d\n%s", got.code, got.stderr)
	}
}

package testutil

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stuckAfter is far above what anything takes that Unstuck guards, also in a
// virtual machine.
const stuckAfter = 20 * time.Minute

// Unstuck ends a process that a test waits for in vain, and fails the test with
// what each thread of the process and each goroutine does. It returns what says
// that the wait is over.
func Unstuck(t testing.TB, pid int) (over func()) {
	t.Helper()
	timer := time.AfterFunc(stuckAfter, func() {
		goroutines := make([]byte, 1<<20)
		goroutines = goroutines[:runtime.Stack(goroutines, true)]
		t.Errorf("nothing came of process %d in %v\n%s\n%s", pid, stuckAfter, threadsOf(pid), goroutines)
		_ = unix.Kill(pid, unix.SIGKILL)
	})
	return func() { timer.Stop() }
}

// threadsOf tells what the threads of a process do, as the kernel says.
func threadsOf(pid int) string {
	var out strings.Builder
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, thread := range threads {
		fmt.Fprintln(&out, thread)
		for _, name := range []string{"stat", "wchan", "syscall", "stack"} {
			text, err := os.ReadFile(filepath.Join(thread, name))
			fmt.Fprintf(&out, "\t%s: %s %v\n", name, strings.TrimSpace(string(text)), err)
		}
	}
	return out.String()
}

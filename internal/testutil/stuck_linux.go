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

// stuckAfter is far longer than anything that Unstuck guards takes, even in a virtual machine.
const stuckAfter = 20 * time.Minute

// Unstuck kills a process that a test waits for in vain, and fails the test with the state of
// each thread of the process and of each goroutine. Call over when the wait has ended.
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

// threadsOf returns the state of the threads of a process, from the kernel.
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

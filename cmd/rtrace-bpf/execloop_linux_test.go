package main

import (
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/cli"
)

// TestAttachToExecLoop attaches to a process that executes programs all the time, and
// detaches at any moment. This loses nothing.
func TestAttachToExecLoop(t *testing.T) {
	eachSideband(t, func(t *testing.T, way string) {
		child := waiting(t, "execagain", "0")
		child.Go()
		defer child.Signal(syscall.SIGKILL)
		for range 8 {
			r := start(t, child, append([]string{"--format", "jsonl", way}, ample...)...)
			r.Signal(syscall.SIGINT)
			r.ends(cli.OK)
			if text := string(r.Stderr()); strings.Contains(text, "note:") || strings.Contains(text, "warning") {
				t.Errorf("it warns:\n%s", text)
			}
		}
	})
}

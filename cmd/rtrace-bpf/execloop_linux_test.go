package main

import (
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/cli"
)

// A process that becomes another program all the time can be attached to and left at
// any moment. Nothing is missing for that.
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

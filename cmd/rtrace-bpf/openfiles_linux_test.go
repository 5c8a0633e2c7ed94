package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// If the limit on open files is too low, the message reports that limit, and not a missing
// feature of the kernel.
func TestFewOpenFiles(t *testing.T) {
	child := waiting(t, "alloc", "1", "10")
	for _, limit := range []int{12, 18, 26, 30, 36, 44, 60} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			cmd := command(t, "-p", fmt.Sprint(child.PID), "-o", t.TempDir())
			shell := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, limit), "sh"}, cmd.Args...)...)
			shell.Env = cmd.Env
			got := finish(t, shell)
			if got.code != int(cli.Failed) || strings.Contains(got.stderr, "not supported") || !strings.Contains(got.stderr, "open files") || !strings.Contains(got.stderr, "ulimit -n") {
				t.Errorf("exit code %d\n%s", got.code, got.stderr)
			}
		})
	}
}

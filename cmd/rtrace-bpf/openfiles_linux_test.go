package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// Where too few open files are allowed, this is what the message says, and not that the
// kernel lacks something.
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

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// unread starts the command with a FIFO without a reader as output, and returns when the
// command prints that it waits. rest is the remaining standard error.
func unread(t *testing.T, args ...string) (child *testutil.Child, fifo string, rest io.Reader) {
	t.Helper()
	testutil.NeedBPF(t)
	fifo = filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	cmd := command(t, append([]string{"-o", fifo}, args...)...)
	cmd.Stderr = w
	child = testutil.Start(t, cmd)
	w.Close()
	lines := bufio.NewReader(r)
	line, err := lines.ReadString('\n')
	if want := "rtrace-bpf: waiting for a reader of " + fifo + "\n"; err != nil || line != want {
		t.Fatalf("it prints %q, %v, want %q", line, err, want)
	}
	return child, fifo, lines
}

// While rtrace-bpf waits for a reader of its output, the first signal ends it, with one
// line.
func TestOutputWithoutReader(t *testing.T) {
	for name, test := range map[string]struct {
		signal unix.Signal
		args   func(t *testing.T) []string
		code   cli.ExitCode
	}{
		"SIGTERM":                         {unix.SIGTERM, oneProcess, cli.Failed},
		"SIGINT":                          {unix.SIGINT, oneProcess, cli.Failed},
		"a command that is held, SIGTERM": {unix.SIGTERM, commanded, ownFailure},
		"a command that is held, SIGINT":  {unix.SIGINT, commanded, ownFailure},
	} {
		t.Run(name, func(t *testing.T) {
			child, fifo, rest := unread(t, test.args(t)...)
			child.Signal(test.signal)
			text, err := io.ReadAll(rest)
			if err != nil || string(text) != "rtrace-bpf: create output: open "+fifo+": ended while waiting for a reader\n" {
				t.Errorf("it prints %q, %v", text, err)
			}
			if code := child.Wait(); code != int(test.code) {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
		})
	}
}

func oneProcess(t *testing.T) []string {
	return []string{"-p", fmt.Sprint(waiting(t, "alloc", "1", "10").PID), "--duration", "1ns"}
}

func commanded(t *testing.T) []string {
	return []string{"--", testutil.Build(t, "alloc"), "1", "10"}
}

// --duration starts when the output has a reader and the probes are attached.
func TestOutputWithLateReader(t *testing.T) {
	child := waiting(t, "alloc", "1", "10")
	r, fifo, rest := unread(t, "-p", fmt.Sprint(child.PID), "--duration", "1ns", "--format", "jsonl")
	out, err := exec.Command("cat", fifo).Output()
	if err != nil || !strings.Contains(string(out), `{"kind":"end"`) {
		t.Errorf("through the FIFO came %q, %v", out, err)
	}
	text, _ := io.ReadAll(rest)
	if code := r.Wait(); code != int(cli.OK) || strings.Contains(string(text), "waiting") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	child.Go()
	child.Succeed()
}

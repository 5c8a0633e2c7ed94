package testutil

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestWaitFile(t *testing.T) {
	t.Run("exists", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		WaitFile(t, path, nil)
	})
	t.Run("created later", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		c := Start(t, exec.Command("sh", "-c", `read go <&4; : > "$1.other"; : > "$1"; read end <&4`, "sh", path))
		if _, err := c.gate.WriteString("go\n"); err != nil {
			t.Fatal(err)
		}
		WaitFile(t, path, c)
		c.Close()
	})
	t.Run("renamed to", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		c := Start(t, exec.Command("sh", "-c", `: > "$1.tmp"; mv "$1.tmp" "$1"; read end <&4`, "sh", path))
		WaitFile(t, path, c)
		c.Close()
	})
	t.Run("never", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		c := Start(t, exec.Command("sh", "-c", "echo cannot >&2; exit 5"))
		message := fatal(func(r *recorder) { WaitFile(r, path, c) })
		if !strings.Contains(message, "code 5") || !strings.Contains(message, "cannot") {
			t.Errorf("message %q, want the exit code and what was printed", message)
		}
	})
}

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// After a signal neither a machine nor build results are left.
func TestInterrupted(t *testing.T) {
	// The command would inherit a signal that is ignored here, as by nohup.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(caught) })
	for _, way := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE} {
		t.Run(way.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cache, fifo, kernel := filepath.Join(dir, "cache"), filepath.Join(dir, "fifo"), filepath.Join(dir, "vmlinuz")
			if err := os.WriteFile(kernel, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := commanded(t, machines(t, "exec 9>"+fifo+"; echo runs >&9; "+up+hangs, ""), cache, "matrix", "--vmlinuz", kernel)
			var output strings.Builder
			cmd.Stdout, cmd.Stderr = &output, &output
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				ended <- cmd.Wait()
				// If no machine ever runs, this ends the wait for one.
				if f, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
					f.Close()
				}
			}()
			f, err := os.Open(fifo) // the machine holds its other end
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			in := bufio.NewReader(f)
			if line, err := in.ReadString('\n'); line != "runs\n" {
				t.Fatalf("the machine printed %q, %v\n%s", line, err, output.String())
			}
			if err := cmd.Process.Signal(way); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, in); err != nil { // waits for the machine to end
				t.Error(err)
			}
			if err := <-ended; err == nil {
				t.Error("the command succeeded")
			}
			if code := cmd.ProcessState.ExitCode(); code != exitBroken {
				t.Errorf("exit code %d, want %d\n%s", code, exitBroken, output.String())
			}
			left, err := os.ReadDir(filepath.Join(cache, "work"))
			if err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// commanded returns the command with arguments for a package with few tests.
func commanded(t *testing.T, path, cache string, args ...string) *exec.Cmd {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), own, append(args, "--accel", "tcg", "--cache", cache, "--userland", "shell", "./vmtest/cpio")...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "PATH="+path)
	return cmd
}

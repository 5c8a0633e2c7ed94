package testutil

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Child is a process that a test started. It is killed at the end of the test if it still runs.
type Child struct {
	PID int

	t      testing.TB
	cmd    *exec.Cmd
	ready  *bufio.Reader
	gate   *os.File
	stdout bytes.Buffer
	stderr bytes.Buffer
	exited chan struct{}
	err    error // of Wait, valid once exited is closed
}

// Spawn starts the program at path. See Start.
func Spawn(t testing.TB, path string, args ...string) *Child {
	t.Helper()
	return Start(t, exec.Command(path, args...))
}

// Start starts cmd with ordinary priority and the two pipes of the gate: on descriptor 3 the
// child writes "ready", from 4 it reads the byte that lets it continue. A program without a
// gate just runs. Its output is collected unless cmd redirects it.
func Start(t testing.TB, cmd *exec.Cmd) *Child {
	t.Helper()
	NoteStart(t)
	readyRead, readyWrite := pipe(t)
	goRead, goWrite := pipe(t)
	c := &Child{t: t, cmd: cmd, ready: bufio.NewReader(readyRead), gate: goWrite, exited: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &c.stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &c.stderr
	}
	cmd.ExtraFiles = []*os.File{readyWrite, goRead}
	// A grandchild that holds our pipes open must not delay the test.
	cmd.WaitDelay = 10 * time.Second
	err := ordinary(cmd.Start)
	readyWrite.Close()
	goRead.Close()
	if err != nil {
		readyRead.Close()
		goWrite.Close()
		t.Fatalf("start %s: %v", cmd.Path, err)
	}
	c.PID = cmd.Process.Pid
	go func() {
		c.err = cmd.Wait()
		close(c.exited)
	}()
	t.Cleanup(func() {
		// Kill does nothing if the process was waited for, so no other process is hit.
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("kill %s: %v", cmd.Path, err)
		}
		<-c.exited
		readyRead.Close()
		goWrite.Close()
	})
	return c
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// Ready waits until the child reports that it is ready.
func (c *Child) Ready() {
	c.t.Helper()
	line, err := c.ready.ReadString('\n')
	if err == io.EOF {
		<-c.exited
		c.t.Fatalf("%s ended before it was ready: %v\n%s", c.cmd.Path, c.err, c.stderr.Bytes())
	}
	if err != nil || line != "ready\n" {
		c.t.Fatalf("%s printed %q, not ready: %v", c.cmd.Path, line, err)
	}
}

// Go lets the child continue. At a second call, some programs end.
func (c *Child) Go() {
	c.t.Helper()
	if _, err := c.gate.Write([]byte{1}); err != nil {
		c.t.Fatalf("let %s go: %v", c.cmd.Path, err)
	}
}

// Close closes the gate: the child reads the end of file. A child that has not passed the gate
// ends.
func (c *Child) Close() {
	c.t.Helper()
	if err := c.gate.Close(); err != nil {
		c.t.Fatalf("close the gate of %s: %v", c.cmd.Path, err)
	}
}

// Signal sends a signal to the child.
func (c *Child) Signal(sig os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatalf("signal %s: %v", c.cmd.Path, err)
	}
}

// Exited is closed when the child has ended and its output is complete.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Wait waits for the end of the child and returns its exit code, 128+n if
// signal n ended it.
func (c *Child) Wait() int {
	c.t.Helper()
	<-c.exited
	var exit *exec.ExitError
	if c.err != nil && !errors.As(c.err, &exit) {
		c.t.Fatalf("wait for %s: %v", c.cmd.Path, c.err)
	}
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return c.cmd.ProcessState.ExitCode()
}

// Succeed waits for the end of the child, which must exit with code 0.
func (c *Child) Succeed() {
	c.t.Helper()
	if code := c.Wait(); code != 0 {
		c.t.Fatalf("%s: exit code %d\n%s", c.cmd.Path, code, c.stderr.Bytes())
	}
}

// Output waits for the end of the child and returns its standard output.
func (c *Child) Output() []byte {
	<-c.exited
	return c.stdout.Bytes()
}

// Stderr waits for the end of the child and returns its standard error.
func (c *Child) Stderr() []byte {
	<-c.exited
	return c.stderr.Bytes()
}

// Report waits for the end of a program of testdata/progs, which must exit with code 0, and
// returns the program's report about its own calls.
func (c *Child) Report() *Report {
	c.t.Helper()
	c.Succeed()
	r, err := ParseReport(c.Output())
	if err != nil {
		c.t.Fatalf("output of %s: %v", c.cmd.Path, err)
	}
	return r
}

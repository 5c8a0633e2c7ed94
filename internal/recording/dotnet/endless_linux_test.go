package dotnet

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"rtrace-bpf/internal/cli"
	diagnostics "rtrace-bpf/internal/linux/dotnet"
	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/internal/recording/status"
	wire "rtrace-bpf/internal/wire/nettrace"
)

// idle starts a process that waits for the end of the test.
func idle(t *testing.T) (pid int, folder string) {
	t.Helper()
	folder = t.TempDir()
	cmd := exec.Command("cat")
	cmd.Env = []string{"TMPDIR=" + folder}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	// Its environment can be read once it has answered, not yet when it is started.
	if _, err := io.WriteString(in, "up\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, folder
}

// endlessRuntime makes a process look like one of .NET whose events have no end: it
// sends them until the connection is closed, whatever it receives. stop is called when
// it receives the request to stop.
func endlessRuntime(t *testing.T, stop func()) (pid int) {
	t.Helper()
	pid, folder := idle(t)
	stat, err := proc.ReadStat(pid)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(folder, fmt.Sprintf("dotnet-diagnostic-%d-%d-socket", pid, stat.Start)))
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	answer := func(conn net.Conn) {
		defer conn.Close()
		head := make([]byte, 20)
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		_, _ = io.CopyN(io.Discard, conn, int64(binary.LittleEndian.Uint16(head[14:]))-int64(len(head)))
		switch [2]byte(head[16:]) {
		case [2]byte{4, 8}:
			_, _ = conn.Write(append([]byte("DOTNET_IPC_V1\x00\x48\x00\xff\x00\x00\x00"), make([]byte, 52)...))
		case [2]byte{2, 1}:
			stop()
			_, _ = conn.Read(head) // there is no answer
		case [2]byte{2, 5}:
			_, err := conn.Write([]byte("DOTNET_IPC_V1\x00\x1c\x00\xff\x00\x00\x00" + "\x07\x00\x00\x00\x00\x00\x00\x00"))
			for junk := make([]byte, 1<<16); err == nil; {
				_, err = conn.Write(junk)
			}
		}
	}
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { answer(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return pid
}

// captureEndless records a runtime for a nanosecond, and what it sends then.
func captureEndless(ctx context.Context, t *testing.T, pid int, path string) error {
	t.Helper()
	return Capture(ctx, pid, &Options{
		Events: diagnostics.Config{Providers: []diagnostics.Provider{{Name: "x"}}}, Output: output.Options{Path: path}, Format: wire.Format, Duration: 1, Line: status.New(status.Options{Out: io.Discard}),
		Ready: func(context.Context) error { return nil },
	})
}

// What a runtime sends after the end of the recording is bounded.
func TestDotnetWithoutEnd(t *testing.T) {
	old := mostLate
	t.Cleanup(func() { mostLate = old })
	mostLate = 1 << 20
	pid := endlessRuntime(t, func() {})
	err := captureEndless(t.Context(), t, pid, filepath.Join(t.TempDir(), "endless.nettrace"))
	if cli.Code(err) != cli.Incomplete || !strings.Contains(err.Error(), "sent more than 1.0 MiB after the end of the recording") {
		t.Errorf("the error is %v", err)
	}
}

// After the duration, the first signal ends a stream that has no end.
func TestDotnetWithoutEndInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pid := endlessRuntime(t, cancel)
	err := captureEndless(ctx, t, pid, os.DevNull)
	if cli.Code(err) != cli.Incomplete || !strings.Contains(err.Error(), "ended at once") {
		t.Errorf("the error is %v", err)
	}
}

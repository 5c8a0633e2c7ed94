package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/proc"
)

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

// What a runtime sends after the end of the recording is bounded.
func TestDotnetWithoutEnd(t *testing.T) {
	old := mostLate
	t.Cleanup(func() { mostLate = old })
	mostLate = 1 << 20
	pid := endlessRuntime(t, func() {})
	path := filepath.Join(t.TempDir(), "endless.nettrace")
	code, errOut := inDotnet(t, pid, "--duration", "1ns", "-o", path)
	if code != cli.Incomplete || !strings.Contains(errOut, "sent more than 1.0 MiB after the end of the recording") {
		t.Errorf("exit code %d, %s", code, errOut)
	}
}

// After --duration, the first signal ends a stream that has no end.
func TestDotnetWithoutEndInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pid := endlessRuntime(t, cancel)
	var out, errOut bytes.Buffer
	s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}
	code := run(ctx, s, []string{"--dotnet", "-p", fmt.Sprint(pid), "--duration", "1ns", "-o", os.DevNull}, settings{})
	if code != cli.Incomplete || !strings.Contains(errOut.String(), "ended at once") {
		t.Errorf("exit code %d, %s", code, errOut.String())
	}
}

package main

import (
	"bytes"
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
	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/trace"
)

const recordedStream = "../../testdata/corpus/nettrace/v4-live/net10-x64-linux-gcalloc-norundown.nettrace"

// idle starts a process that runs until the test ends.
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
	// The environment of the process can be read once it has answered, but not right after
	// its start.
	if _, err := io.WriteString(in, "up\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, folder
}

// asRuntime returns a process that seems to be a .NET runtime and streams data. It sends
// the last held bytes only when it is asked to stop.
func asRuntime(t *testing.T, data []byte, held int) (pid int) {
	t.Helper()
	pid, folder := idle(t)
	serve(t, pid, folder, data, held)
	return pid
}

// serve answers as asRuntime does, for the process pid, whose temporary folder is folder.
func serve(t *testing.T, pid int, folder string, data []byte, held int) {
	t.Helper()
	stat, err := proc.ReadStat(pid)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(folder, fmt.Sprintf("dotnet-diagnostic-%d-%d-socket", pid, stat.Start)))
	if err != nil {
		t.Fatal(err)
	}
	stopped, drained := make(chan struct{}), make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				head := make([]byte, 20)
				if _, err := io.ReadFull(conn, head); err != nil {
					return
				}
				rest := make([]byte, int(binary.LittleEndian.Uint16(head[14:]))-20)
				_, _ = io.ReadFull(conn, rest)
				switch [2]byte(head[16:]) {
				case [2]byte{4, 8}: // pid, cookie and five empty texts
					_, _ = conn.Write(append([]byte("DOTNET_IPC_V1\x00\x48\x00\xff\x00\x00\x00"), make([]byte, 52)...))
				case [2]byte{2, 1}:
					close(stopped)
					<-drained
					_, _ = conn.Write([]byte("DOTNET_IPC_V1\x00\x1c\x00\xff\x00\x00\x00" + "\x07\x00\x00\x00\x00\x00\x00\x00"))
				case [2]byte{2, 5}:
					_, _ = conn.Write([]byte("DOTNET_IPC_V1\x00\x1c\x00\xff\x00\x00\x00" + "\x07\x00\x00\x00\x00\x00\x00\x00"))
					_, _ = conn.Write(data[:len(data)-held])
					if held > 0 {
						<-stopped
					}
					_, _ = conn.Write(data[len(data)-held:])
					close(drained)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
}

// inDotnet runs the command with --dotnet on a process.
func inDotnet(t *testing.T, pid int, args ...string) (code cli.ExitCode, errOut string) {
	t.Helper()
	var out, text bytes.Buffer
	s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &text}
	code = run(t.Context(), s, append([]string{"--dotnet", "-p", fmt.Sprint(pid)}, args...), settings{})
	if out.Len() > 0 {
		t.Errorf("standard output %q", out.String())
	}
	return code, text.String()
}

// TestDotnetSaves checks that the stream of the runtime is saved unchanged and complete.
func TestDotnetSaves(t *testing.T) {
	data, err := os.ReadFile(recordedStream)
	if err != nil {
		t.Fatal(err)
	}
	pid := asRuntime(t, data, len(data)/2)
	path := filepath.Join(t.TempDir(), "saved.nettrace")
	if code, errOut := inDotnet(t, pid, "--duration", "1ms", "-o", path); code != cli.OK || !strings.Contains(errOut, "of events") {
		t.Errorf("exit code %d, %s", code, errOut)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes are saved, want %d, %v", len(got), len(data), err)
	}
}

// TestDotnetStrange checks that parts of a stream that rtrace does not understand are
// saved, too.
func TestDotnetStrange(t *testing.T) {
	data, err := os.ReadFile(recordedStream)
	if err != nil {
		t.Fatal(err)
	}
	data = append(append(data[:len(data)-1:len(data)-1], 77), make([]byte, 1<<17)...)
	pid := asRuntime(t, data, 0)
	path := filepath.Join(t.TempDir(), "strange.nettrace")
	if code, errOut := inDotnet(t, pid, "-o", path); code != cli.Incomplete || !strings.Contains(errOut, "not understood") {
		t.Errorf("exit code %d, %s", code, errOut)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes of %d are saved, %v", len(got), len(data), err)
	}
}

// callsOf returns the number of calls in a trace.
func callsOf(t *testing.T, path string) (n int) {
	t.Helper()
	for _, r := range load(t, path) {
		if r.Kind == trace.KindCall {
			n++
		}
	}
	return n
}

// TestDotnetDecodes checks that a trace in another format contains what the decoder reads
// from the stream.
func TestDotnetDecodes(t *testing.T) {
	data, err := os.ReadFile(recordedStream)
	if err != nil {
		t.Fatal(err)
	}
	pid := asRuntime(t, data, 0)
	path := filepath.Join(t.TempDir(), "live.jsonl")
	code, errOut := inDotnet(t, pid, "--format", "jsonl", "-o", path)
	want := callsOf(t, recordedStream)
	if code != cli.OK || want == 0 || !strings.Contains(errOut, fmt.Sprintf("%d sampled allocations", want)) || callsOf(t, path) != want {
		t.Errorf("exit code %d, %d calls, want %d: %s", code, callsOf(t, path), want, errOut)
	}
}

// TestDotnetCut checks that a stream is saved up to where a killed process cut it off.
func TestDotnetCut(t *testing.T) {
	data, err := os.ReadFile(recordedStream)
	if err != nil {
		t.Fatal(err)
	}
	one := bytes.LastIndexByte(data[:len(data)-1], data[len(data)-1]) // a byte like that of the end, within the data
	for _, size := range []int{len(data) - 1, one + 1, 10} {
		for _, format := range []string{"nettrace", "jsonl"} {
			pid := asRuntime(t, data[:size], 0)
			path := filepath.Join(t.TempDir(), "cut")
			code, errOut := inDotnet(t, pid, "-q", "--format", format, "-o", path)
			if code != cli.Incomplete || !strings.Contains(errOut, "break off") {
				t.Errorf("%d bytes as %s: exit code %d, %s", size, format, code, errOut)
			}
			if got, err := os.ReadFile(path); format == "nettrace" && (err != nil || !bytes.Equal(got, data[:size])) {
				t.Errorf("%d bytes of %d are saved, %v", len(got), size, err)
			}
		}
	}
}

func TestDotnetUsage(t *testing.T) {
	pid, _ := idle(t)
	for name, tt := range map[string]struct {
		args []string
		code cli.ExitCode
		want string
	}{
		"no server":   {nil, cli.Failed, "no diagnostics server of .NET"},
		"two":         {[]string{"-p", "1"}, cli.Usage, "--dotnet takes one process, and 2 are selected"},
		"no provider": {[]string{"--dotnet-events", ":1"}, cli.Usage, "names no provider"},
		"keywords":    {[]string{"--dotnet-events", "P:xyz"}, cli.Usage, `not "xyz"`},
		"level":       {[]string{"--dotnet-events", "P:1:6"}, cli.Usage, "the level is 1 to 5"},
		"perf map":    {[]string{"--dotnet-perf-map"}, cli.Usage, "which --dotnet has with --native only"},
		"dry run":     {[]string{"--dry-run"}, cli.Usage, "--dry-run"},
		"format":      {[]string{"--native", "--format", "sprtrace"}, cli.Usage, "sprtrace cannot hold events of a runtime next to native calls: write nettrace or jsonl"},
		"two native":  {[]string{"--native", "-p", "1"}, cli.Usage, "--dotnet takes one process, and 2 are selected"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, errOut := inDotnet(t, pid, tt.args...); code != tt.code || !strings.Contains(errOut, tt.want) || strings.Count(errOut, "\n") > 2 {
				t.Errorf("exit code %d, %s", code, errOut)
			}
		})
	}
}

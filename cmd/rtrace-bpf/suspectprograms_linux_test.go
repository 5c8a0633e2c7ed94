package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/testutil"
)

// watchedProgram is a real program, the table of top that decides, and what ends it.
type watchedProgram struct {
	t      testing.TB
	pid    int
	tables *bufio.Reader
}

// watchProgram starts top on a program that runs.
func watchProgram(t testing.TB, pid int) *watchedProgram {
	t.Helper()
	cmd, tables, stderr := beginTop(t, pid)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s", stderr)
		}
	})
	topUntil(t, tables, func(*suspectLine) bool { return true }) // its probes are attached
	return &watchedProgram{t, pid, tables}
}

// leaks waits until the first suspect has a function in its stack.
func (w *watchedProgram) leaks(function string, step func()) {
	w.t.Helper()
	topUntil(w.t, w.tables, func(x *suspectLine) bool {
		step()
		return len(x.Suspects) > 0 && slices.ContainsFunc(x.Suspects[0].Stack, func(frame string) bool { return strings.Contains(frame, function) })
	})
}

// redis is a redis-server and a connection to it.
type redis struct {
	t    testing.TB
	pid  int
	conn net.Conn
	in   *bufio.Reader
	keys int
}

// startRedis starts a redis-server with flags.
func startRedis(t testing.TB, flags ...string) *redis {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "socket")
	cmd := exec.Command(testutil.Installed(t, "redis-server"), append([]string{"--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no"}, flags...)...)
	child := testutil.Start(t, cmd)
	testutil.WaitFile(t, socket, child)
	conn, err := net.Dial("unix", socket)
	for errors.Is(err, unix.ECONNREFUSED) { // the socket has its name before the server listens
		select {
		case <-child.Exited():
			t.Fatalf("redis-server ended: %s", child.Output())
		default:
		}
		conn, err = net.Dial("unix", socket)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &redis{t: t, pid: child.PID, conn: conn, in: bufio.NewReader(conn)}
}

// set stores new keys, each with a value of 200 bytes.
func (r *redis) set(n int) {
	r.t.Helper()
	for range n {
		r.keys++
		key := fmt.Sprintf("key%d", r.keys)
		if _, err := fmt.Fprintf(r.conn, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$200\r\n%0200d\r\n", len(key), key, 0); err != nil {
			r.t.Fatal(err)
		}
		if line, err := r.in.ReadString('\n'); err != nil || line != "+OK\r\n" {
			r.t.Fatalf("SET: %q, %v", line, err)
		}
	}
}

// Real programs: what a leak adds is a suspect, a cache in balance is none. docs/suspects.md has
// further ones.
func TestSuspectsOfPrograms(t *testing.T) {
	testutil.Extra(t, "redis and node, and half a minute")
	testutil.NeedBPF(t)
	t.Run("redis-server with keys that stay", func(t *testing.T) {
		r := startRedis(t)
		watchProgram(t, r.pid).leaks("processInputBuffer", func() { r.set(20) })
	})
	t.Run("redis-server with a limit of memory", func(t *testing.T) {
		r := startRedis(t, "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru")
		const full = 12_000 // keys
		r.set(full)
		w := watchProgram(t, r.pid)
		rounds := 0
		last := topUntil(t, w.tables, func(*suspectLine) bool { // all keys are replaced several times
			r.set(full / 20)
			rounds++
			return rounds == 100
		})
		if len(last.Suspects) > 0 {
			t.Errorf("suspects %+v", last.Suspects)
		}
	})
	t.Run("node with buffers that stay", func(t *testing.T) {
		const script = "const keep = []; console.log('ready'); setInterval(() => { keep.push(Buffer.alloc(20000)); for (let i = 0; i < 10; i++) Buffer.alloc(9000).fill(i); }, 10)"
		cmd := exec.Command(testutil.Installed(t, "node"), "-e", script)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		child := testutil.Start(t, cmd)
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatalf("%q, %v", line, err)
		}
		go func() { _, _ = io.Copy(io.Discard, out) }()
		watchProgram(t, child.PID).leaks("BackingStore::Allocate", func() {})
	})
}

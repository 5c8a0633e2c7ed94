package dotnet

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/linux/proc"
)

// asServer, in the environment, makes the test program a process with a socket like a
// runtime's. It answers each command with a fixed answer that contains the socket's name. The
// variable holds the time in that name.
const asServer = "DOTNET_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		if err := serveAs(os.Getenv(asServer)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveAs serves until standard input ends.
func serveAs(start string) error {
	if start == "start" {
		stat, err := os.ReadFile("/proc/self/stat")
		if err != nil {
			return err
		}
		parsed, err := proc.ParseStat(stat)
		if err != nil {
			return err
		}
		start = fmt.Sprint(parsed.Start)
	}
	folder := os.Getenv("TMPDIR")
	// Use a name that is short enough for a socket address.
	if err := os.Chdir(folder); err != nil {
		return err
	}
	name := fmt.Sprintf("dotnet-diagnostic-%d-%s-socket", os.Getpid(), start)
	if start != "none" {
		l, err := net.Listen("unix", name)
		if err != nil {
			return err
		}
		go answerAll(l, name)
	}
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func answerAll(l net.Listener, name string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		request := make([]byte, headSize)
		if _, err := io.ReadFull(conn, request); err == nil {
			b := append([]byte{1, 0, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 16)...)
			for _, text := range []string{name, "Linux", "x64", "entry", "10.0.9", "linux-x64"} {
				b = appendString(b, text)
			}
			answer, _ := appendMessage(nil, answerOK, b)
			_, _ = conn.Write(answer)
		}
		conn.Close()
	}
}

// child starts a server with a temporary folder.
func child(t *testing.T, folder, start string, attr *syscall.SysProcAttr) int {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = []string{"TMPDIR=" + folder, asServer + "=" + start}
	cmd.SysProcAttr = attr
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		if attr != nil && errors.Is(err, fs.ErrPermission) {
			t.Skip("SKIPPED-PRIVILEGE: namespaces may not be made here (run it as root)")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd.Process.Pid
}

// stale creates sockets of processes that were killed.
func stale(t *testing.T, folder string, id int, starts ...string) {
	t.Helper()
	for _, s := range starts {
		t.Chdir(folder)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("dotnet-diagnostic-%d-%s-socket", id, s), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
}

// The socket of a process is found wherever the process has its temporary folder.
func TestFind(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(long, link); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		folder, start string
		attr          *syscall.SysProcAttr
	}{
		"by its start":      {t.TempDir(), "start", nil},
		"another clock":     {t.TempDir(), "7", nil},
		"a long path":       {long, "start", nil},
		"a link":            {link, "start", nil},
		"another namespace": {t.TempDir(), "start", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}},
		"another mount":     {t.TempDir(), "start", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}},
	} {
		t.Run(name, func(t *testing.T) {
			pid := child(t, tt.folder, tt.start, tt.attr)
			inner, err := innerID(pid)
			if err != nil || (inner == 1) != (tt.attr != nil) {
				t.Fatalf("it is process %d there, %v", inner, err)
			}
			if tt.start == "start" {
				stale(t, tt.folder, inner, "1", "99999999999")
			}
			c, err := Find(pid)
			if err != nil {
				t.Fatal(err)
			}
			info, err := c.ProcessInfo(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if info.PID != 42 || !strings.HasPrefix(info.CommandLine, fmt.Sprintf("dotnet-diagnostic-%d-", inner)) {
				t.Errorf("%+v", info)
			}
		})
	}
}

func TestFindNothing(t *testing.T) {
	folder := t.TempDir()
	pid := child(t, folder, "none", nil)
	if _, err := Find(pid); !errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), folder) {
		t.Errorf("no socket: %v", err)
	}
	stale(t, folder, pid, "5")
	c, err := Find(pid)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ProcessInfo(t.Context()); !errors.Is(err, ErrNoServer) {
		t.Errorf("a socket that nobody listens on: %v", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(pid); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := Find(1 << 30); err == nil {
		t.Error("no process, no error")
	}
}

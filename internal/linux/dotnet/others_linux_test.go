package dotnet

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
)

// stranger is a user who is neither root nor the one who runs the test.
const stranger = 54321

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED-PRIVILEGE: needs root, to be another user")
	}
}

// listenAs serves at a path as another user.
func listenAs(t *testing.T, uid int, path string) {
	t.Helper()
	t.Chdir(filepath.Dir(path)) // only root may be able to use the folders above
	runtime.LockOSThread()      // the user ID is per thread
	effective := func(uid int) {
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); e != 0 {
			t.Fatal(e)
		}
	}
	effective(uid)
	l, err := net.Listen("unix", filepath.Base(path))
	effective(0)
	runtime.UnlockOSThread()
	if err != nil {
		t.Fatal(err)
	}
	go answerAll(l, "stranger")
	t.Cleanup(func() { l.Close() })
}

// ask connects to the server of a process.
func ask(t *testing.T, pid int) error {
	t.Helper()
	c, err := Find(pid)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = c.ProcessInfo(ctx)
	return err
}

// In a folder like /tmp, another user may have made a socket with the name of the process's, or
// a link with that name to a socket of the process's user.
func TestSocketsOfOthers(t *testing.T) {
	needRoot(t)
	for name, tt := range map[string]struct {
		listener, owner int
		exact           bool
		err             string
	}{
		"its user's":              {0, 0, true, ""},
		"another's":               {stranger, stranger, true, "belongs to another user"},
		"another's, newest":       {stranger, stranger, false, "belongs to another user"},
		"another listens":         {stranger, 0, true, "belongs to user 54321"},
		"another process listens": {0, 0, false, "its server is process"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			pid := child(t, folder, "none", nil)
			stat, err := proc.ReadStat(pid)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(folder, exactName(pid, stat.Start))
			if !tt.exact {
				path = filepath.Join(folder, exactName(pid, stat.Start+1))
			}
			if err := os.Chmod(folder, 0o777|os.ModeSticky); err != nil {
				t.Fatal(err)
			}
			listenAs(t, tt.listener, path)
			if err := os.Lchown(path, tt.owner, tt.owner); err != nil {
				t.Fatal(err)
			}
			if err := ask(t, pid); (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %q", err, tt.err)
			}
		})
	}
}

// A socket of another user does not hide that of the process.
func TestOwnSocketAmongOthers(t *testing.T) {
	needRoot(t)
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	pid := child(t, folder, "7", nil)
	listenAs(t, stranger, filepath.Join(folder, exactName(pid, 8)))
	if err := ask(t, pid); err != nil {
		t.Error(err)
	}
}

// A perf map of another user is not opened, nor is anything but a regular file.
func TestPerfMapsOfOthers(t *testing.T) {
	needRoot(t)
	m, err := FindPerfMap(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	m.dir.Close()
	path := filepath.Join(t.TempDir(), m.name)
	if m.dir, err = os.Open(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for name, tt := range map[string]struct {
		make func() error
		err  error
	}{
		"own":       {func() error { return os.WriteFile(path, []byte("1 1 f\n"), 0o600) }, nil},
		"another's": {func() error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, stranger, 0)) }, fs.ErrPermission},
		"a link":    {func() error { return os.Symlink("/etc/passwd", path) }, unix.ELOOP},
		"a FIFO":    {func() error { return unix.Mkfifo(path, 0o600) }, fs.ErrInvalid},
	} {
		if err := tt.make(); err != nil {
			t.Fatal(err)
		}
		f, err := m.Open()
		if !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %v", name, err, tt.err)
		}
		if err == nil {
			f.Close()
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

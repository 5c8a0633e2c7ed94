//go:build unix

package safefile_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/safefile"
)

// create creates a file in the test's folder.
func create(t *testing.T, path string) (*os.File, error) {
	t.Helper()
	dir, name, err := safefile.Folder(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	f, err := safefile.Create(dir, name)
	if err == nil {
		t.Cleanup(func() { f.Close() })
	}
	return f, err
}

func TestCreateForTheOwnerAlone(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	f, err := create(t, filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// An existing file is not opened, and no link is followed, wherever it leads.
func TestCreateWhereSomethingIs(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(path("regular"), []byte("precious"), 0o600), os.Symlink("regular", path("link")), os.Symlink("missing", path("dangling")),
		os.Symlink("loop", path("loop")), syscall.Mkfifo(path("fifo"), 0o600), os.Mkdir(path("dir"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"regular", "link", "dangling", "loop", "fifo", "dir"} {
		if _, err := create(t, path(name)); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Lstat(path("missing")); err == nil {
		t.Error("a file was created through a link")
	}
	if text, err := os.ReadFile(path("regular")); string(text) != "precious" {
		t.Errorf("the file was touched: %q, %v", text, err)
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root, to give files away")
	}
}

// owner returns the owner and group of a file.
func owner(t *testing.T, f *os.File) (uid, gid uint32) {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	return st.Uid, st.Gid
}

func TestOwnerUnderSudo(t *testing.T) {
	needRoot(t)
	for name, test := range map[string]struct {
		user, group string
		uid, gid    uint32
	}{
		"sudo":           {"54321", "54322", 54321, 54322},
		"root":           {"0", "0", 0, 0},
		"no sudo":        {"", "", 0, 0},
		"no group":       {"54321", "", 0, 0},
		"nobody at all":  {"4294967295", "54322", 0, 0},
		"negative":       {"-1", "54322", 0, 0},
		"no number":      {"alice", "54322", 0, 0},
		"large":          {"4294967296", "54322", 0, 0},
		"group too":      {"54321", "4294967295", 0, 0},
		"the largest":    {"4294967294", "4294967294", 1<<32 - 2, 1<<32 - 2},
		"spaces":         {" 54321", "54322", 0, 0},
		"sign":           {"+54321", "54322", 0, 0},
		"another number": {"0xd431", "54322", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SUDO_UID", test.user)
			t.Setenv("SUDO_GID", test.group)
			f, err := create(t, filepath.Join(t.TempDir(), "file"))
			if err != nil {
				t.Fatal(err)
			}
			if uid, gid := owner(t, f); uid != test.uid || gid != test.gid {
				t.Errorf("it belongs to %d:%d, want %d:%d", uid, gid, test.uid, test.gid)
			}
		})
	}
}

// send writes to a special file.
func send(t *testing.T, path string) {
	t.Helper()
	f, err := safefile.OpenSpecial(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("text"); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// received checks that the text has arrived.
func received(t *testing.T, from interface{ Read([]byte) (int, error) }) {
	t.Helper()
	text := make([]byte, 8)
	if n, err := from.Read(text); err != nil || string(text[:n]) != "text" {
		t.Errorf("received: %q, %v", text[:n], err)
	}
}

func TestSpecialFiles(t *testing.T) {
	t.Run("fifo", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "fifo")
		send(t, reader(t, path).Name())
	})
	t.Run("socket", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "socket")
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		send(t, path)
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		received(t, conn)
	})
	t.Run("device", func(t *testing.T) { send(t, os.DevNull) })
	t.Run("descriptor", func(t *testing.T) {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		defer write.Close()
		send(t, "/dev/fd/"+itoa(write.Fd()))
		received(t, read)
	})
}

func itoa(n uintptr) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

// reader creates a FIFO with a reader.
func reader(t *testing.T, path string) *os.File {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// OpenSpecial waits for a reader of a FIFO until ctx ends, and calls waits once
// before that.
func TestFIFOWithoutReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits := 0
	f, err := safefile.OpenSpecial(ctx, path, func() { waits++; cancel() })
	if f != nil || !errors.Is(err, safefile.ErrNoReader) || !strings.Contains(err.Error(), path) || waits != 1 {
		t.Errorf("ended: %v, %v, %d calls of waits", f, err, waits)
	}

	type result struct {
		f   *os.File
		err error
	}
	read := make(chan result, 1)
	f, err = safefile.OpenSpecial(t.Context(), path, func() {
		go func() {
			f, err := os.Open(path)
			read <- result{f, err}
		}()
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := <-read
	if r.err != nil {
		t.Fatal(r.err)
	}
	defer r.f.Close()
	if _, err := f.WriteString("text"); err != nil {
		t.Error(err)
	}
	received(t, r.f)
}

func TestNotSpecialEnough(t *testing.T) {
	dir := t.TempDir()
	fifo := reader(t, filepath.Join(dir, "fifo"))
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.Symlink(fifo.Name(), path("link")), os.Symlink(os.DevNull, path("device")),
		os.WriteFile(path("regular"), nil, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		path("link"): "symbolic link", path("device"): "symbolic link", path("regular"): "file already exists",
		dir: "file already exists", path("missing"): "no such file",
	}
	if os.Getuid() == 0 {
		const blockDevice, loop0 = syscall.S_IFBLK | 0o600, 7 << 8
		if err := syscall.Mknod(path("block"), blockDevice, loop0); err != nil {
			t.Logf("no block device to try: %v", err)
		} else {
			tests[path("block")] = "not a FIFO, socket or character device"
		}
	}
	for path, want := range tests {
		if _, err := safefile.OpenSpecial(t.Context(), path, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", filepath.Base(path), err, want)
		}
	}
}

// In a folder like /tmp another user may have created the FIFO to read along.
func TestSpecialFilesOfOthers(t *testing.T) {
	needRoot(t)
	const other = 54321
	for name, test := range map[string]struct {
		mode  os.FileMode
		owner int
		sudo  string
		taken bool
	}{
		"sticky, other's":         {0o777 | os.ModeSticky, other, "", false},
		"sticky, own":             {0o777 | os.ModeSticky, 0, "", true},
		"sticky, sudo's user's":   {0o777 | os.ModeSticky, other, "54321", true},
		"sticky, another sudo's":  {0o777 | os.ModeSticky, other, "54322", false},
		"not sticky":              {0o777, other, "", true},
		"sticky, for nobody else": {0o755 | os.ModeSticky, other, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SUDO_UID", test.sudo)
			t.Setenv("SUDO_GID", test.sudo)
			dir := t.TempDir()
			path := filepath.Join(dir, "fifo")
			reader(t, path)
			if err := errors.Join(os.Chmod(dir, test.mode), os.Chown(path, test.owner, 0)); err != nil {
				t.Fatal(err)
			}
			f, err := safefile.OpenSpecial(t.Context(), path, nil)
			if (err == nil) != test.taken {
				t.Errorf("%v", err)
			}
			if err == nil {
				f.Close()
			}
		})
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	dir, _, err := safefile.Folder(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := errors.Join(os.WriteFile(path, []byte("text"), 0o600), os.Symlink("file", path+"link"), syscall.Mkfifo(path+"fifo", 0o600)); err != nil {
		t.Fatal(err)
	}
	f, err := safefile.Read(dir, "file")
	if err != nil {
		t.Fatal(err)
	}
	received(t, f)
	f.Close()
	for _, name := range []string{"filelink", "filefifo", "missing"} {
		if f, err := safefile.Read(dir, name); err == nil {
			t.Errorf("%s was opened", name)
			f.Close()
		}
	}
}

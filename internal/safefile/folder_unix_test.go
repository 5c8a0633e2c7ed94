//go:build unix

package safefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"rtrace-bpf/internal/safefile"
)

func TestMakeFolder(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(path("file"), nil, 0o600), os.Mkdir(path("there"), 0o755), os.Chmod(path("there"), 0o755), os.Symlink("missing", path("dangling"))); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{"new": 0o700, "new2/": 0o700, "there": 0o755} {
		if err := safefile.MakeFolder(dir + "/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(path(name)); err != nil || info.Mode() != mode|fs.ModeDir {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
	for name, want := range map[string]error{"file": fs.ErrExist, "dangling": fs.ErrExist, "no/such": fs.ErrNotExist} {
		if err := safefile.MakeFolder(path(name)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

func TestFolderUnderSudo(t *testing.T) {
	needRoot(t)
	t.Setenv("SUDO_UID", "54321")
	t.Setenv("SUDO_GID", "54322")
	path := filepath.Join(t.TempDir(), "folder")
	if err := safefile.MakeFolder(path + "/"); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if uid, gid := owner(t, f); uid != 54321 || gid != 54322 {
		t.Errorf("it belongs to %d:%d", uid, gid)
	}
}

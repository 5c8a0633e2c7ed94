package atomicfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"rtrace-bpf/internal/atomicfile"
)

// Only the owner can access a private file. It replaces a link, and stays in
// its folder even if another folder takes the folder's name.
func TestPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	path := filepath.Join(dir, "out")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "real"), []byte("precious"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", path); err != nil {
		t.Fatal(err)
	}
	f, err := atomicfile.CreatePrivate(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	moved := dir + "-moved"
	if err := errors.Join(os.Rename(dir, moved), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Error(err)
	}
	if got := names(t, dir); got != "" {
		t.Errorf("in the other folder: %s", got)
	}
	if got := names(t, moved); got != "out real" {
		t.Errorf("in the folder: %s", got)
	}
	if text, err := os.ReadFile(filepath.Join(moved, "real")); string(text) != "precious" {
		t.Errorf("the link was followed: %q, %v", text, err)
	}
	info, err := os.Lstat(filepath.Join(moved, "out"))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

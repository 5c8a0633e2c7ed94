package outfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/outfile"
)

// swapped moves the folder of a file away and puts another folder in its place,
// which contains a file with the same name. It returns the new path of the
// first file.
func swapped(t *testing.T, path string) string {
	t.Helper()
	dir, name := filepath.Split(filepath.Clean(path))
	dir = filepath.Clean(dir)
	moved := dir + "-moved"
	if err := errors.Join(os.Rename(dir, moved), os.Mkdir(dir, 0o700), os.WriteFile(path, []byte("precious"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(moved, name)
}

func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A user who can rename the folder cannot make us remove another file.
func TestDiscardStaysInItsFolder(t *testing.T) {
	dir := folder(t)
	o, err := outfile.CreateNumbered(dir, "trace", ".x")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "trace-0.x"); o.Path() != want || !o.Regular() {
		t.Errorf("it is %s, regular: %v, want %s", o.Path(), o.Regular(), want)
	}
	moved := swapped(t, o.Path())
	if err := o.Discard(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(o.Path()); string(text) != "precious" {
		t.Errorf("the other file: %q, %v", text, err)
	}
	if _, err := os.Lstat(moved); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

// Existing names, including links that lead nowhere, are skipped.
func TestNumbers(t *testing.T) {
	dir := folder(t)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "t-0"), nil, 0o600), os.Symlink("missing", filepath.Join(dir, "t-1"))); err != nil {
		t.Fatal(err)
	}
	o, err := outfile.CreateNumbered(dir, "t", "")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(o.Path()) != "t-2" {
		t.Errorf("it is %s", o.Path())
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if _, err := outfile.Create(t.Context(), filepath.Join(dir, "t-1"), nil); err == nil {
		t.Error("a file was created through a link")
	}
	if _, err := os.Lstat(filepath.Join(dir, "missing")); err == nil {
		t.Error("a file was created through a link")
	}
}

// A message contains the name of the file once.
func TestMessages(t *testing.T) {
	path := filepath.Join(folder(t), "out")
	o, err := outfile.Create(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	_, written := o.Write([]byte("text"))
	for want, err := range map[string]error{"write " + path + ": file already closed": written, "close " + path + ": file already closed": o.Close()} {
		if err == nil || !errors.Is(err, os.ErrClosed) || !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "write "+path) > 1 {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/atomicfile"
)

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

func create(t *testing.T, path, text string) *atomicfile.File {
	t.Helper()
	f, err := atomicfile.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCommit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	for _, text := range []string{"first", "second"} {
		before, _ := os.ReadFile(path)
		f := create(t, path, text)
		if now, _ := os.ReadFile(path); string(now) != string(before) {
			t.Errorf("before Commit it is %q", now)
		}
		if !f.Regular() {
			t.Error("not regular")
		}
		if err := errors.Join(f.Commit(), f.Commit(), f.Discard()); err != nil {
			t.Error(err)
		}
		if now, _ := os.ReadFile(path); string(now) != text || names(t, dir) != "out" {
			t.Errorf("after Commit it is %q, in %s", now, names(t, dir))
		}
	}
}

func TestDiscard(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	f := create(t, path, "text")
	if err := errors.Join(f.Discard(), f.Discard(), f.Commit()); err != nil || names(t, dir) != "" {
		t.Errorf("%v; left: %s", err, names(t, dir))
	}
}

// If files must have names, a hidden name is used and removed.
func TestNamedFromTheBeginning(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	for _, complete := range []bool{false, true} {
		f, err := atomicfile.CreateNamed(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("text")); err != nil {
			t.Fatal(err)
		}
		if got := names(t, dir); !strings.HasPrefix(got, ".out.") || !strings.HasSuffix(got, ".tmp") {
			t.Errorf("before Commit the folder contains %q", got)
		}
		end, want := f.Discard, ""
		if complete {
			end, want = f.Commit, "out"
		}
		if err := end(); err != nil {
			t.Error(err)
		}
		if got := names(t, dir); got != want {
			t.Errorf("complete: %v, left: %q", complete, got)
		}
	}
}

func TestLinkIsFollowed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "real"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Skip(err)
	}
	if err := create(t, link, "text").Commit(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "real"))
	if err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
}

func TestDevice(t *testing.T) {
	f := create(t, os.DevNull, "text")
	if f.Regular() {
		t.Error("regular")
	}
	if err := f.Commit(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("the device is %v, %v", info.Mode(), err)
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := atomicfile.Create(dir); err == nil {
		t.Error("a folder was replaced")
	}
	_, err := atomicfile.Create(filepath.Join(dir, "no", "out"))
	if p, ok := errors.AsType[*fs.PathError](err); !ok || !errors.Is(err, fs.ErrNotExist) || p.Path != filepath.Join(dir, "no", "out") {
		t.Errorf("%v", err)
	}
	path := filepath.Join(dir, "sub", "out")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f := create(t, path, "text")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err == nil || names(t, filepath.Dir(path)) != "out" {
		t.Errorf("%v; left: %s", err, names(t, filepath.Dir(path)))
	}
}

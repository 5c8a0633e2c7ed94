package proc

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Files lists regular files with their sizes, including one without a name, and neither pipes
// nor folders.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	kept, removed := filepath.Join(dir, "kept"), filepath.Join(dir, "removed")
	want := map[int]File{}
	for path, size := range map[string]int{kept: 5, removed: 70_000} {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		fd := int(f.Fd())
		want[fd] = File{FD: fd, Size: uint64(size), Path: path, Deleted: path == removed}
	}
	if err := os.Remove(removed); err != nil {
		t.Fatal(err)
	}
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	all, err := Files(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	others := []int{int(folder.Fd()), int(r.Fd()), int(w.Fd())}
	for i, f := range all {
		if i > 0 && all[i-1].FD >= f.FD || slices.Contains(others, f.FD) {
			t.Errorf("%+v", f)
		}
		if x, ok := want[f.FD]; ok && x == f {
			delete(want, f.FD)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v in %v", want, all)
	}
	if _, err := Files(1 << 30); err == nil {
		t.Error("a process that is not there has files")
	}
}

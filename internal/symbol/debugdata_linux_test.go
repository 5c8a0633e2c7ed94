package symbol

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// withDebugData makes a stripped program whose symbols are in .gnu_debugdata, as
// Fedora's packages do.
func withDebugData(t *testing.T, damage func([]byte) []byte) string {
	t.Helper()
	if _, err := exec.LookPath("xz"); err != nil {
		t.Fatalf("no xz to pack with (make need-test installs it): %v", err)
	}
	prog, debug := split(t, "-Wl,--build-id")
	small := filepath.Join(t.TempDir(), "small")
	run(t, "", "objcopy", "-S", "--remove-section", ".gnu_debuglink", "--remove-section", ".comment", "--keep-symbol=quiet", debug, small)
	run(t, "", "xz", small)
	packed, err := os.ReadFile(small + ".xz")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(small, damage(packed), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "", "objcopy", "--add-section", ".gnu_debugdata="+small, prog)
	return prog
}

func TestDebugData(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func([]byte) []byte
		want   bool
	}{
		{"whole", func(b []byte) []byte { return b }, true},
		{"cut", func(b []byte) []byte { return b[:len(b)/2] }, false},
		{"changed", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, false},
		{"other", func([]byte) []byte { return []byte("no archive") }, false},
	} {
		f, err := Open(withDebugData(t, tt.damage))
		if err != nil {
			t.Fatal(err)
		}
		if got := named(t, f); got != tt.want {
			t.Errorf("%s: named %v, want %v", tt.name, got, tt.want)
		}
		f.Close()
	}
}

// TestOpenBuildID opens files by their build ID. The file itself is preferred to its debug
// file, and a file with another build ID is never used.
func TestOpenBuildID(t *testing.T) {
	prog, debug := split(t, "-Wl,--build-id")
	_, other := split(t, "-Wl,--build-id", "-O1")
	plain, err := Open(prog)
	if err != nil {
		t.Fatal(err)
	}
	id := plain.BuildID()
	plain.Close()
	dir := t.TempDir()
	name := filepath.Join(dir, ".build-id", id[:2], id[2:])
	places := &Places{Debug: []string{dir}}
	open := func() (found, detached bool) {
		f, err := places.OpenBuildID(id)
		if err != nil {
			return false, false
		}
		defer f.Close()
		if !named(t, f) && f.Detached() {
			t.Error("a debug file without names")
		}
		return true, f.Detached()
	}
	if found, _ := open(); found {
		t.Error("found in an empty folder")
	}
	move(t, other, name)
	if found, _ := open(); found {
		t.Error("another file was used")
	}
	places.Fetch = func(string, bool) string { return name }
	if found, _ := open(); found {
		t.Error("another file was fetched and used")
	}
	places.Fetch = nil
	move(t, debug, name+".debug")
	if found, detached := open(); !found || !detached {
		t.Errorf("by the debug file: found %v, detached %v", found, detached)
	}
	move(t, prog, name)
	if found, detached := open(); !found || detached {
		t.Errorf("by the file: found %v, detached %v", found, detached)
	}
	for _, id := range []string{"", "ab", "../../../etc/passwd", "ABCD", id + "/"} {
		if _, err := places.OpenBuildID(id); err == nil {
			t.Errorf("build ID %q found", id)
		}
	}
}

package testutil

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BuildCgo builds the Go program with C code in testdata/progs/name, and returns its path. CC
// is the compiler of the C code; the default is gcc.
func BuildCgo(t testing.TB, name string) string {
	t.Helper()
	key := programKey(name, []string{"cgo"})
	if path, ok := prepared(key, name); ok {
		return path
	}
	to := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-o", to, filepath.Join(Root(t), "testdata", "progs", name, "main.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=1", "CC="+setting("CC", "gcc"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	to, err := prepare(key, to)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

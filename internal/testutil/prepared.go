package testutil

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Tests also run where there is no compiler: in the virtual machines of vmtest. What they need
// built is built in advance by a run of the same tests that stops at the start of each program
// (Start).
const (
	// preparedDir names a folder of programs, each under the key that Build makes from its name
	// and flags. A program that is there is not built.
	preparedDir = "RTRACE_PREPARED"
	// preparing, if set, makes the run fill this folder.
	preparing = "RTRACE_PREPARING"
	// sharedDir names a folder that the packages of one run share: each uses what others have
	// built. `make test` makes and removes it.
	sharedDir = "RTRACE_PROGRAMS"
)

// programFolder returns the folder of programs that were built in advance or by other packages,
// or "".
func programFolder() string {
	if dir := os.Getenv(preparedDir); dir != "" {
		return dir
	}
	return os.Getenv(sharedDir)
}

// prepared returns the path of a program that was built earlier. A run that prepares builds all
// of them.
func prepared(key, name string) (string, bool) {
	dir := programFolder()
	if dir == "" || Preparing() {
		return "", false
	}
	path := filepath.Join(dir, key, name)
	_, err := os.Stat(path)
	return path, err == nil
}

// prepare copies a program that was built to where prepared finds it, and returns its path. It
// does nothing in a run without such a folder, or with a filled one.
func prepare(key, built string) (string, error) {
	if !Preparing() && os.Getenv(sharedDir) == "" {
		return built, nil
	}
	dir := filepath.Join(programFolder(), key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	to := filepath.Join(dir, filepath.Base(built))
	data, err := os.ReadFile(built)
	if err != nil {
		return "", err
	}
	// Another package's tests may build the same program at the same time.
	part := fmt.Sprintf("%s.%d", to, os.Getpid())
	if err := os.WriteFile(part, data, 0o755); err != nil {
		return "", err
	}
	return to, os.Rename(part, to)
}

// started holds the names of the running tests that have started a program.
var started sync.Map

// NoteStart records that a test starts a program. A run that only prepares ends the test here.
// Start calls it.
func NoteStart(t testing.TB) {
	t.Helper()
	if Preparing() {
		t.Skip("SKIPPED: a run that only builds programs")
	}
	name := t.Name()
	started.Store(name, nil)
	t.Cleanup(func() { started.Delete(name) })
}

// beforeStart fails a test that builds something after it, or its parent test, has started a
// program: the run that prepares does not get that far.
func beforeStart(t testing.TB, what string) {
	t.Helper()
	for name := t.Name(); name != ""; name = name[:max(0, strings.LastIndexByte(name, '/'))] {
		if _, after := started.Load(name); after {
			t.Fatalf("%s is built after %s started a program: build it first (virtual machines have no compiler, see package testutil)", what, name)
		}
	}
}

// Preparing reports whether this run only builds programs. They may be for another machine,
// which GOARCH then names.
func Preparing() bool { return os.Getenv(preparedDir) != "" && os.Getenv(preparing) != "" }

// BuildCommand builds a command of this module, given its import path, and
// returns the path of the program. It is built without cgo.
func BuildCommand(t testing.TB, command string) string {
	t.Helper()
	name := path.Base(command)
	const key = "go"
	if path, ok := prepared(key, name); ok {
		return path
	}
	beforeStart(t, command)
	to := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-o", to, command)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", command, err, out)
	}
	to, err := prepare(key, to)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

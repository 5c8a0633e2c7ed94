package testutil

import (
	"os"
	"testing"
)

// tier names the variable that says which tests are to run. Unset, all do.
const tier = "RTRACE_TESTS"

// first is the value of tier for `make test`: tests that need gcc, python3 and the
// kernel, and of long sweeps a part.
const first = "first"

// Extra leaves the rest of a test out of `make test`; `make test-rest` and `make
// test-all` run it. need says what makes it so: a program or library that is large to
// install, or the time that the test takes. The report of `make test` lists what was
// left out and why.
func Extra(t testing.TB, need string) {
	t.Helper()
	if FirstOnly() {
		t.Skip("LEFT-OUT: " + need)
	}
}

// Sweep reports whether a test that goes through combinations goes through all of
// them. It does not in `make test`, which leaves the whole sweep to `make test-rest`,
// nor in `go test -short`, as virtual machines run it.
func Sweep(t testing.TB) bool {
	t.Helper()
	if FirstOnly() {
		t.Log("REDUCED: a part of the combinations")
		return false
	}
	return !testing.Short()
}

// large lists programs that `make test` does without, and what they are called in its
// report.
var large = map[string]string{
	"chromium": "Chromium", "clang": "clang", "clang++": "clang", "dot": "Graphviz", "dwz": "dwz",
	"java": "a JDK", "javac": "a JDK", "llvm-dwp": "LLVM", "llvm-symbolizer": "LLVM", "node": "node", "npm": "node",
	"qemu-aarch64": "qemu-user", "qemu-i386": "qemu-user", "rg": "ripgrep",
}

// FirstOnly reports whether this is a run of `make test`, which leaves out what Extra
// marks. A script skips with "LEFT-OUT: " and what it needs then.
func FirstOnly() bool { return os.Getenv(tier) == first }

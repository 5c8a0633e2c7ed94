package testutil

import (
	"os"
	"testing"
)

// tier names the variable that selects the tests to run. If it is unset, all run.
const tier = "RTRACE_TESTS"

// first is the value of tier in `make test`: it selects tests that need only gcc, python3 and
// the kernel, and a part of long sweeps.
const first = "first"

// Extra skips the rest of a test in `make test`; `make test-rest` and `make test-all` run it.
// need is the reason: a program or library that is large to install, or the time that the test
// takes. The report of `make test` lists what was left out and why.
func Extra(t testing.TB, need string) {
	t.Helper()
	if FirstOnly() {
		t.Skip("LEFT-OUT: " + need)
	}
}

// Sweep reports whether a test should run all combinations. It reports false in `make test`,
// which leaves the whole sweep to `make test-rest`, and in `go test -short`, which virtual
// machines use.
func Sweep(t testing.TB) bool {
	t.Helper()
	if FirstOnly() {
		t.Log("REDUCED: a part of the combinations")
		return false
	}
	return !testing.Short()
}

// large lists the programs that `make test` does without, with their names in its report.
var large = map[string]string{
	"chromium": "Chromium", "clang": "clang", "clang++": "clang", "dot": "Graphviz", "dwz": "dwz",
	"heaptrack_print": "heaptrack", "java": "a JDK", "javac": "a JDK", "llvm-dwp": "LLVM", "llvm-symbolizer": "LLVM", "node": "node", "npm": "node",
	"qemu-aarch64": "qemu-user", "qemu-i386": "qemu-user", "redis-cli": "redis", "redis-server": "redis", "redis-check-rdb": "redis", "rg": "ripgrep", "tmux": "tmux", "valgrind": "valgrind",
}

// FirstOnly reports whether this is a run of `make test`, which leaves out what Extra marks. A
// script then skips with "LEFT-OUT: " and what it needs.
func FirstOnly() bool { return os.Getenv(tier) == first }

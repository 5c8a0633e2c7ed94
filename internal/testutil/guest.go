package testutil

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What vmtest tells the tests that it runs in a virtual machine.
const (
	vmCase     = "RTRACE_VM_CASE"
	guestLacks = "RTRACE_GUEST_LACKS"
)

// VMCase names what is special about the virtual machine that vmtest runs the
// tests in ("preempt"; vmtest/README.md lists them), and is empty elsewhere.
// Tests that a machine was booted for demand there what they cannot be without.
func VMCase() string { return os.Getenv(vmCase) }

// GuestLacks tells whether the virtual machine that vmtest runs the tests in was
// made without a program, or the package libc6-dbg, to be smaller: only there may a test
// skip for that.
func GuestLacks(program string) bool {
	return slices.Contains(strings.Fields(os.Getenv(guestLacks)), program)
}

// Installed returns the path of a program that the Makefile installs for tests, given its
// name or its path. A test skips without it only where GuestLacks says so; one of the
// large programs leaves the test out of `make test`, as Extra does.
func Installed(t testing.TB, program string) string {
	t.Helper()
	if need, ok := large[filepath.Base(program)]; ok {
		Extra(t, need)
	}
	path, err := exec.LookPath(program)
	if err != nil && GuestLacks(filepath.Base(program)) {
		t.Skipf("SKIPPED-GUEST: this virtual machine was made without %s (vmtest --userland)", program)
	}
	if err != nil {
		t.Fatalf("%s is not installed (make need-test-all installs it): %v", program, err)
	}
	return path
}

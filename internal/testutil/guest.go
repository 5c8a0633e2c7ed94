package testutil

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Environment variables that vmtest sets for the tests in a virtual machine.
const (
	vmCase     = "RTRACE_VM_CASE"
	guestLacks = "RTRACE_GUEST_LACKS"
)

// VMCase returns what is special about the virtual machine that vmtest runs the tests in
// ("preempt"; vmtest/README.md lists the cases). It is "" elsewhere. In a machine that was
// booted for a test, that test requires what it otherwise skips without.
func VMCase() string { return os.Getenv(vmCase) }

// GuestLacks reports whether the virtual machine of vmtest was made without a program, or
// without the package libc6-dbg, to make it smaller. Only there may a test skip for that
// reason.
func GuestLacks(program string) bool {
	return slices.Contains(strings.Fields(os.Getenv(guestLacks)), program)
}

// Installed returns the path of a program that the Makefile installs for tests, given its name
// or its path. A test skips without it only if GuestLacks reports true. If the program is one
// of the large ones, `make test` leaves the test out, as with Extra.
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

package testutil

import (
	"os"
	"slices"
	"strings"
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
// made without a program, to be smaller: only there may a test skip for that.
func GuestLacks(program string) bool {
	return slices.Contains(strings.Fields(os.Getenv(guestLacks)), program)
}

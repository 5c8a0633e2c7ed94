package testutil

import "os"

// VMCase names what is special about the virtual machine that vmtest runs the
// tests in ("preempt"; vmtest/README.md lists them), and is empty elsewhere.
// Tests that a machine was booted for demand there what they cannot be without.
func VMCase() string { return os.Getenv("RTRACE_VM_CASE") }

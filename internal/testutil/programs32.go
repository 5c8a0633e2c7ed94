package testutil

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Builder builds a program of testdata/progs, as Build does.
type Builder func(t testing.TB, name string, flags ...string) string

// Build32 builds a program for 32-bit x86, whatever the tests are built for.
func Build32(t testing.TB, name string, flags ...string) string {
	t.Helper()
	return Build(t, name, slices.Concat([]string{"-m32"}, flags)...)
}

// EachWidth runs a test for 64-bit programs and, on x86-64, for 32-bit ones, as subtests
// "64-bit" and "32-bit".
func EachWidth(t *testing.T, test func(t *testing.T, build Builder)) {
	t.Helper()
	t.Run("64-bit", func(t *testing.T) { test(t, Build) })
	if !Has32Bit() {
		return
	}
	t.Run("32-bit", func(t *testing.T) {
		Need32Bit(t)
		test(t, Build32)
	})
}

// Has32Bit reports whether 32-bit programs are among what is tested: on x86-64.
func Has32Bit() bool {
	if runtime.GOARCH != "amd64" {
		return false
	}
	// A run that only builds may build for another machine.
	return !Preparing() || os.Getenv("CC") == "" || buildsX86()
}

var buildsX86 = sync.OnceValue(func() bool {
	out, err := exec.Command(os.Getenv("CC"), "-dumpmachine").Output()
	return err != nil || strings.HasPrefix(string(out), "x86_64")
})

// Need32Bit skips the test if 32-bit programs are not tested here, or if the kernel cannot run
// them. A test that also has 64-bit cases calls it in a subtest.
func Need32Bit(t testing.TB) {
	t.Helper()
	if !Has32Bit() {
		t.Skip("SKIPPED: not on x86-64")
	}
	if !Runs32Bit(t) {
		t.Skip("SKIPPED-KERNEL: it runs no 32-bit programs (CONFIG_IA32_EMULATION)")
	}
}

// Runs32Bit reports whether 32-bit programs are tested here and the kernel can run them. A run
// that only builds assumes the latter.
func Runs32Bit(t testing.TB) bool {
	t.Helper()
	if !Has32Bit() || Preparing() {
		return Has32Bit()
	}
	cmd := exec.Command(Waiter(t, elf.ELFCLASS32, elf.EM_386))
	switch err := cmd.Start(); {
	case errors.Is(err, syscall.ENOEXEC):
		return false
	case err != nil:
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	return true
}

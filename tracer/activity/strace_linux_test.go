package activity

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// The classes of the system calls, and their numbers, are the same as in strace.
func TestClassesAreThoseOfStrace(t *testing.T) {
	if testutil.GuestLacks("strace") {
		t.Skip("SKIPPED-GUEST: this virtual machine was made without strace (vmtest --userland)")
	}
	testutil.EachWidth(t, classesAreThoseOfStrace)
}

// strace prints a name for a call, or the number of a call that it does not know.
var (
	calledName   = regexp.MustCompile(`(?m)^([a-z_0-9]+)\(`)
	calledNumber = regexp.MustCompile(`(?m)^syscall_0x`)
)

// Intentional differences: socketcall stands for the calls that it makes, and close_range takes
// descriptors, unlike in strace 6.1. No kernel has the next two. The others end the program, or
// its filter does not see them.
var notCompared = []string{"socketcall", "getpmsg", "putpmsg", "exit_group", "rt_sigreturn", "sigreturn", "execve", "close_range"}

func classesAreThoseOfStrace(t *testing.T, build testutil.Builder) {
	program := build(t, "syscalls")
	abi, column := 0, columns()[0]
	if strings.HasSuffix(t.Name(), "32-bit") {
		abi, column = 1, columns()[1]
	}
	traced := func(what string) map[string]bool {
		t.Helper()
		names := map[string]bool{}
		// Two numbers in the middle of x86-64 belong to the kernel's uprobes, which kill a
		// process that uses them.
		for _, bounds := range [][2]string{{"0", "335"}, {"337", "452"}} {
			out := filepath.Join(t.TempDir(), "out")
			cmd := exec.Command("strace", "-qq", "-o", out, "-e", "trace="+what, program, bounds[0], bounds[1])
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v %s", cmd, err, text)
			}
			text, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if calledNumber.Match(text) && what == "all" {
				t.Log("strace does not know all names")
			}
			for _, m := range calledName.FindAllSubmatch(text, -1) {
				names[string(m[1])] = true
			}
		}
		return names
	}
	known := traced("all")
	if len(known) < 250 {
		t.Fatalf("strace has seen %d calls", len(known))
	}
	compared := 0
	for class, name := range map[Classes]string{File: "%file", IPC: "%ipc", Process: "%process", Signal: "%signal", Network: "%network", Descriptor: "%desc"} {
		theirs := traced(name)
		for i := range systemCalls {
			s := &systemCalls[i]
			// strace knows the call by the number that was used.
			if s.numbers[column] < 0 || s.numbers[column] >= 452 || !known[s.name] || slices.Contains(notCompared, s.name) {
				continue
			}
			compared++
			if ours := s.classes&class != 0; ours != theirs[s.name] {
				t.Errorf("%s is in class %s: %v, strace has %v", s.name, name, ours, theirs[s.name])
			}
			delete(theirs, s.name)
		}
		for other := range theirs {
			if !strings.HasPrefix(other, "syscall_") && !slices.Contains(notCompared, other) {
				t.Errorf("strace has %s in %s", other, name)
			}
		}
	}
	if compared < 1000 && runtime.GOARCH == "amd64" {
		t.Errorf("%d comparisons (kind %d of programs)", compared, abi)
	}
}

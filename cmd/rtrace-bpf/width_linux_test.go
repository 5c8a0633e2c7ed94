package main

import (
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// pointerSize returns how many bytes pointers have in a program.
func pointerSize(t *testing.T, path string) int {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Class == elf.ELFCLASS32 {
		return 4
	}
	return 8
}

// The header of a trace has the machine and the pointer size of the program.
func TestTracesOf32BitPrograms(t *testing.T) {
	testutil.Need32Bit(t)
	tool := rtrace(t)
	for format, suffix := range map[string]string{"sprtrace": "", "jsonl": ".jsonl", "mtrc": ".mtrc", "text": ".txt"} {
		t.Run(format, func(t *testing.T) {
			child := waitingOf(t, testutil.Build32, "alloc", "2", "100")
			r := start(t, child, "--format", format)
			child.Go()
			child.Succeed()
			r.ends(cli.OK)
			path := filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, suffix))
			records := load(t, path)
			head := records[0].Header
			if records[0].Kind != trace.KindHeader || head.PointerSize != 4 || head.Arch != "i686" {
				t.Errorf("header %+v", head)
			}
			// MTRC has no names of the allocator's functions.
			if n := count(records, "calloc"); n != 200 && format != "mtrc" {
				t.Errorf("%d calls of calloc in the trace, want 200", n)
			}
			out, err := exec.Command(tool, "info", path).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "i686, little-endian, 32-bit\n") {
				t.Errorf("rtrace info: %v\n%s", err, out)
			}
		})
	}
}

// If a process executes a program of another width and then one of its own again, the trace
// has the calls of its own width, and the command reports the missing ones.
func TestProgramOfTheOtherWidthInBetween(t *testing.T) {
	testutil.Need32Bit(t)
	child := waiting(t, "exec", "10", testutil.Build32(t, "exec"), "20", testutil.Build(t, "exec"), "30", "/bin/true")
	r := start(t, child)
	for range 2 {
		child.Go()
		child.Ready() // the next program runs
	}
	child.Go()
	child.Succeed()
	r.ends(cli.Incomplete)
	r.says("the process executed a program with another allocator or none")
	made := 0
	for _, rec := range r.trace() {
		if rec.Kind == trace.KindCall && rec.Call.Function == "malloc" && rec.Call.Size == 100 {
			made++
		}
	}
	if made != 10+30 {
		t.Errorf("%d calls of malloc(100) in the trace, want 40", made)
	}
}

package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/internal/testutil/truth"
	"rtrace-bpf/trace"
)

// tries matches lines about calls that try to take a lock. SWAP's messages about them have
// no place for how long they took.
var tries = regexp.MustCompile(`(?m)^(alloc (?:pthread_mutex|pthread_rwlock|sem)_try\w* \w+ \S+) \S+$`)

// TestModulesInSwap checks that SWAP's messages about files, threads and locks contain the
// calls that the programs print, with and without stacks.
func TestModulesInSwap(t *testing.T) {
	for module, program := range map[string][]string{
		"file":   {testutil.Build(t, "resources_file")},
		"thread": {testutil.Build(t, "resources_threads"), "thread"},
		"lock":   {testutil.Build(t, "resources_threads"), "lock"},
	} {
		t.Run(module, func(t *testing.T) {
			ways := kernelWays(t)
			ways["no stacks"] = []string{"--depth=0"}
			for way, flags := range ways {
				t.Run(way, func(t *testing.T) {
					l := launchCommand(t, slices.Concat([]string{"-e", "file:thread:lock", "--format", "swap", "-q"}, flags), program...)
					l.ends(0)
					var printed []string
					for line := range strings.Lines(tries.ReplaceAllString(string(l.Output()), "$1 0")) {
						printed = append(printed, line)
					}
					records := load(t, traceOf(t, l, "swap"))
					equalResources(t, ofModule(resourceLines(records), module), strings.Join(printed, ""), true)
					for _, r := range records {
						if r.Kind == trace.KindComment {
							t.Errorf("the trace has the comment %q", r.Comment)
						}
					}
				})
			}
		})
	}
}

// ofModule returns the lines about resources of a module, and losses. A program whose locks
// are traced also makes threads.
func ofModule(lines []string, module string) []string {
	kinds := map[string][]string{"file": {"fd", "fp"}, "thread": {"thread"}, "lock": {"mutex", "rwlock", "condition", "semaphore"}}
	return slices.DeleteFunc(lines, func(line string) bool {
		words := strings.Fields(line)
		return len(words) > 2 && words[0] != "lost" && !slices.Contains(kinds[module], words[2])
	})
}

// TestModulesAsSwap checks that a trace rewritten as SWAP keeps exactly the calls for which
// SWAP has messages.
func TestModulesAsSwap(t *testing.T) {
	for _, program := range [][]string{{testutil.Build(t, "resources_file")}, {testutil.Build(t, "resources_threads"), "lock"}, {testutil.Build(t, "resources_memory"), "mmap"}} {
		l := launchCommand(t, []string{"-e", "memory:file:thread:lock:mmap", "--format", "jsonl", "-q"}, program...)
		l.ends(0)
		calls, kept := 0, 0
		foreign := map[uint32]bool{}
		for _, r := range l.records() {
			switch r.Kind {
			case trace.KindResource:
				foreign[r.Resource.ID] = r.Resource.Type == "mmap" || r.Resource.Type == "brk"
			case trace.KindCall:
				if calls++; !foreign[r.Call.Resource] {
					kept++
				}
			}
		}
		if n, err := truth.CheckFormat(traceOf(t, l, "jsonl"), "swap"); err != nil || n != kept || kept == 0 {
			t.Errorf("%s: %d of %d calls compared, want %d: %v", filepath.Base(program[0]), n, calls, kept, err)
		}
	}
}

// traceOf returns the path of the only trace of a command, in a format.
func traceOf(t *testing.T, l *launching, format string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(l.dir, "rtrace-raw-*-0."+format))
	if err != nil || len(all) != 1 {
		t.Fatalf("traces in the directory: %v, %v", all, err)
	}
	return all[0]
}

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// resourceLines returns the calls of a trace in the form that the programs resources_… print.
func resourceLines(records []*trace.Record) (lines []string) {
	types := map[uint32]string{}
	for _, r := range records {
		switch r.Kind {
		case trace.KindResource:
			types[r.Resource.ID] = r.Resource.Type
		case trace.KindLost:
			lines = append(lines, fmt.Sprintf("lost %d %s", r.Lost.Count, r.Lost.Reason))
		case trace.KindCall:
			c := &r.Call
			line := fmt.Sprintf("%s %s %s %#x %d", c.Op, c.Function, types[c.Resource], c.ID, c.Size)
			for _, a := range c.Args {
				line += fmt.Sprintf(" %s=%s", a.Name, strings.ReplaceAll(a.Value, " ", "_"))
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// fits reports whether a word of a trace's line matches a word of the program's output,
// which is the same word, several alternatives, or limits of a number.
func fits(word, printed string) bool {
	name, limits, _ := strings.Cut(printed, "=")
	value, ok := strings.CutPrefix(word, name+"=")
	if limits == "" {
		limits, value, ok = printed, word, true
	}
	least, most, between := strings.Cut(limits, "..")
	if !between {
		return slices.Contains(strings.Split(printed, "|"), word)
	}
	n, err := strconv.ParseUint(value, 10, 64)
	from, e := strconv.ParseUint(least, 10, 64)
	to := uint64(math.MaxUint64)
	if most != "" {
		to, _ = strconv.ParseUint(most, 10, 64)
	}
	return ok && err == nil && e == nil && from <= n && n <= to
}

// equalResources fails the test unless a trace has exactly the calls that the program printed.
// Without arguments, it ignores arguments in the trace that the program did not print.
func equalResources(t *testing.T, got []string, printed string, arguments bool) {
	t.Helper()
	want := strings.Split(strings.TrimSuffix(printed, "\n"), "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) {
			t.Fatalf("%d in the trace, %d made\n%s\nwant\n%s", len(got), len(want), strings.Join(got, "\n"), printed)
		}
		words, limits := strings.Fields(got[i]), strings.Fields(want[i])
		if !arguments && len(words) > len(limits) {
			words = words[:len(limits)]
		}
		if !slices.EqualFunc(words, limits, fits) {
			t.Errorf("line %d is %q, want %q", i+1, got[i], want[i])
		}
	}
}

// TestModules compares the traces of modules with what the programs did, call for call,
// with each mechanism.
func TestModules(t *testing.T) {
	file, memory, threads := testutil.Build(t, "resources_file"), testutil.Build(t, "resources_memory"), testutil.Build(t, "resources_threads")
	static := testutil.Build(t, "resources_file", "-static")
	programs := map[string][]string{
		"file": {"file", file}, "file of a static program": {"file", static},
		"shmposix": {"shmposix", memory, "shmposix"}, "shmsysv": {"shmsysv", memory, "shmsysv"}, "mmap": {"mmap", memory, "mmap"},
		"memtransfer": {"memtransfer", testutil.Build(t, "resources_transfer")},
		"thread":      {"thread", threads, "thread"}, "lock": {"lock", threads, "lock"},
	}
	for name, program := range programs {
		t.Run(name, func(t *testing.T) {
			for way, flags := range kernelWays(t) {
				t.Run(way, func(t *testing.T) {
					l := launchCommand(t, slices.Concat([]string{"-e", program[0], "-q"}, flags), program[1:]...)
					l.ends(0)
					equalResources(t, resourceLines(l.records()), string(l.Output()), program[0] != "mmap")
				})
			}
		})
	}
}

// TestResourceOption traces functions of resources that --resource defines, even if only
// the program's own symbols contain them.
func TestResourceOption(t *testing.T) {
	program := testutil.Build(t, "resources_pool")
	for way, flags := range kernelWays(t) {
		t.Run(way, func(t *testing.T) {
			l := launchCommand(t, slices.Concat(flags, []string{
				"-e", "file", "-q",
				"--resource", "pool:alloc=pool_get(size=arg2),alloc=pool_make(id=*arg2,size=arg3*arg4,ok=zero),realloc=pool_resize(id=arg2,size=arg3),free=pool_put(id=arg2)",
				"--resource", "handle:alloc=handle_open(id=arg1,ok=nonzero),free=handle_close",
			}), program)
			l.ends(0)
			equalResources(t, resourceLines(l.records()), string(l.Output()), true)
		})
	}
	l := launchCommand(t, []string{"--resource", "x:alloc=nosuch_function"}, program)
	l.ends(0)
	l.says("has the function nosuch_function of the resource x so far")
}

// TestModuleFlags checks that impossible flags are refused before anything starts, with a
// line and at most a hint.
func TestModuleFlags(t *testing.T) {
	for flag, want := range map[string]string{
		"-e nosuch":                          `no module "nosuch"; rtrace-bpf modules lists all modules`,
		"-e file --buffer perf":              "resource modules other than memory need ring buffers",
		"--resource pool":                    "a name and a colon must come first",
		"--resource pool:get":                `"get" is not alloc=FUNCTION, free=FUNCTION or realloc=FUNCTION`,
		"--resource pool:make=f":             `"make" is not alloc, free or realloc`,
		"--resource pool:alloc=f(size=arg0)": `"arg0" is not arg1 to arg16`,
		"--resource pool:alloc=f(bytes=1)":   `unknown field "bytes"`,
		"--resource pool:alloc=f(ok=maybe)":  "ok is zero, nonzero or any",
		"--resource pool:alloc=f(id=arg1":    "a closing parenthesis is missing",
		"--resource pool:free=f(id=*arg1)":   "the id of what is freed must be an argument",
	} {
		var errOut strings.Builder
		code := run(t.Context(), cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &errOut}, append(strings.Fields(flag), "-p", "1"), settings{})
		if code != cli.Usage || !strings.Contains(errOut.String(), want) || strings.Count(errOut.String(), "\n") > 2 {
			t.Errorf("%s: exit code %d, %q, want %q", flag, code, errOut.String(), want)
		}
	}
}

// The list contains modules with their functions and kinds of resources.
func TestModuleList(t *testing.T) {
	var out strings.Builder
	if code := run(t.Context(), cli.Streams{In: strings.NewReader(""), Out: &out, Err: io.Discard}, []string{"--list"}, settings{}); code != cli.OK {
		t.Fatalf("exit code %d", code)
	}
	for _, want := range []string{"memory  ", "file  ", " memfd_create ", "<fd> file descriptor", "lock  ", "<segment> shared memory segment"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

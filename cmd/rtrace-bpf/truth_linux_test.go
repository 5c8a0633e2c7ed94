package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/decoder"
	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/internal/testutil/truth"
)

// shimmed is a program whose calls of the allocator the shim logs.
type shimmed struct {
	*testutil.Child
	t     *testing.T
	logs  string // folder
	depth int
	mark  *truth.Mark
	gates int // how often the program waits; 0 for once

	incomplete bool   // the command must end with exit status 3
	printed    string // standard error of the command
}

// underShim starts a program of testdata/progs with the shim between it and its allocator.
// The shim logs up to depth frames with each call.
func underShim(t *testing.T, build testutil.Builder, depth int, name string, args ...string) *shimmed {
	t.Helper()
	s := &shimmed{t: t, logs: t.TempDir(), depth: depth}
	cmd := exec.Command(build(t, name), args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("SHIM_DEPTH=%d", depth), "SHIM_LOG="+s.logs,
		"LD_PRELOAD="+build(t, "shim", "-shared", "-fPIC", "-static-libgcc"))
	s.Child = testutil.Start(t, cmd)
	return s
}

// traced traces the program from its first gate to its end, and returns the path of the
// trace.
func (s *shimmed) traced(args ...string) string {
	s.t.Helper()
	s.Ready()
	r := s.command(args)
	var err error
	if s.mark, err = truth.NewMark(s.logs, s.PID); err != nil {
		s.t.Fatal(err)
	}
	for range max(s.gates, 1) {
		s.Go()
	}
	s.Wait()
	if !s.incomplete {
		r.ends(cli.OK)
	} else {
		r.ends(cli.Incomplete)
	}
	s.printed = string(r.Stderr())
	return filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.jsonl", s.PID))
}

// command attaches to the program's C library alone, because the shim is an allocator, too.
// It skips the test if this kernel lacks a mechanism in args.
func (s *shimmed) command(args []string) *running {
	s.t.Helper()
	dir := s.t.TempDir()
	ready := filepath.Join(dir, "ready")
	cmd := command(s.t, append([]string{"-p", fmt.Sprint(s.PID), "--allocator", "glibc", "--format", "jsonl", "--ready-file", ready}, args...)...)
	cmd.Dir = dir
	r := &running{Child: testutil.Start(s.t, cmd), t: s.t, dir: dir}
	if !testutil.FileOrEnd(s.t, ready, r.Child) {
		if text := string(r.Stderr()); strings.Contains(text, "not supported by this kernel") {
			s.t.Skipf("SKIPPED-KERNEL: %s", text)
		}
		s.t.Fatalf("the command ended with code %d\n%s", r.Wait(), r.Stderr())
	}
	return r
}

// equal fails the test unless the trace has exactly the calls in the shim's log.
func (s *shimmed) equal(path string) *truth.Checker {
	s.t.Helper()
	c := s.checker()
	s.check(c, path)
	return c
}

func (s *shimmed) checker() *truth.Checker {
	s.t.Helper()
	c, err := truth.NewChecker(s.logs, s.PID, s.mark)
	if err != nil {
		s.t.Fatal(err)
	}
	c.Depth = s.depth
	return c
}

func (s *shimmed) check(c *truth.Checker, path string) {
	s.t.Helper()
	in, err := decoder.OpenFile(path, decoder.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer in.Close()
	if err := c.Check(in); err != nil {
		s.t.Fatalf("the trace is not what happened:\n%v", err)
	}
}

// everyFormat rewrites the trace in each format and compares the results with it.
func everyFormat(t *testing.T, path string) {
	t.Helper()
	for _, f := range encoder.Formats() {
		if _, err := truth.CheckFormat(path, f.Name); err != nil {
			t.Errorf("the trace %v", err)
		}
	}
}

// Programs of other tests run with the shim. Each of their calls must be in the trace, even
// those in libraries, which they do not log.
func TestGroundTruthOfPrograms(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		plug := build(t, "plug", "-shared", "-fPIC")
		for name, args := range map[string][]string{
			"every": nil, "aligned": {"3"}, "alloc": {"8", "500"}, "realloc_race": {"3", "100"},
			"threads_exit": {"50"}, "threads_cxx": {"20"}, "cxx": {"20"}, "dl": {plug, "20"},
			"exec": {"20", build(t, "aligned"), "3"},
		} {
			t.Run(name, func(t *testing.T) {
				s := underShim(t, build, 32, name, args...)
				if name == "exec" { // one gate before exec and one after
					s.gates = 2
				}
				path := s.traced("-A")
				c := s.equal(path)
				if c.Events == 0 || c.Stacks == 0 {
					t.Errorf("%d events and %d stacks were compared", c.Events, c.Stacks)
				}
				everyFormat(t, path)
			})
		}
	})
}

// TestGroundTruth traces a program that uses every function of allocators, chosen by random
// numbers, with the mechanisms, probe sites, states and buffers in turn. The trace must
// have each of its calls, and nothing else.
func TestGroundTruth(t *testing.T) {
	testutil.NeedBPF(t)
	for _, r := range roundsOfEachKind(seed(t), testutil.Runs32Bit(t)) {
		t.Run(r.name(), func(t *testing.T) { r.run(t) })
	}
}

// TestGroundTruthOfKilled does the same with a program that is killed.
func TestGroundTruthOfKilled(t *testing.T) {
	testutil.NeedBPF(t)
	s := schedule(t, testutil.Build, round{Seed: seed(t), Threads: 4, Operations: 1 << 30, Depth: 8, End: "return"})
	s.Ready()
	r := s.command([]string{"-A"})
	var err error
	if s.mark, err = truth.NewMark(s.logs, s.PID); err != nil {
		t.Fatal(err)
	}
	s.Go()
	s.killAfter(2 << 20)
	s.Wait()
	r.ends(cli.OK)
	c := s.equal(filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.jsonl", s.PID)))
	t.Logf("%s", roundFigures(c))
}

// If a thread other than the main one calls exec, the probes do not follow. The command
// must report that, and the trace must be whole up to the exec.
func TestExecByThread(t *testing.T) {
	testutil.NeedBPF(t)
	s := schedule(t, testutil.Build, round{Seed: seed(t), Threads: 4, Operations: 500, End: "threadexec"})
	s.incomplete = true
	path := s.traced("-b", "0")
	if want := "a thread other than the main one executed another program"; !strings.Contains(s.printed, want) {
		t.Errorf("standard error without %q:\n%s", want, s.printed)
	}
	c := s.checker()
	c.Most = 1
	s.check(c, path)
}

// killAfter kills the program when its log has at least the given size.
func (s *shimmed) killAfter(bytes int64) {
	s.t.Helper()
	for {
		info, err := os.Stat(filepath.Join(s.logs, fmt.Sprintf("%d-0", s.PID)))
		if err != nil {
			s.t.Fatal(err)
		}
		if info.Size() >= bytes {
			break
		}
	}
	s.Signal(os.Kill)
}

// mechanisms are combinations of the tracer's mechanisms by name, with the flags that
// select them.
var mechanisms = map[string][]string{
	"best":                   nil,
	"multi-perf-hash-cookie": {"--mechanism", "multi", "--buffer", "perf", "--state", "hash", "--sites", "cookie"},
	"multi-ring-address":     {"--mechanism", "multi", "--buffer", "ring", "--state", "task", "--sites", "address"},
	"perf-ring-task":         {"--mechanism", "perf", "--buffer", "ring", "--state", "task", "--sites", "cookie"},
	"perf-perf-address":      {"--mechanism", "perf", "--buffer", "perf", "--state", "task", "--sites", "address"},
	"oldest":                 {"--mechanism", "perf", "--state", "hash", "--sites", "address", "--bounded"},
}

func mechanismNames() []string { return slices.Sorted(maps.Keys(mechanisms)) }

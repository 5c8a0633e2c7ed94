package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// topLine is what tests need of a line of JSON.
type topLine struct {
	Final     bool
	Lost      uint64
	Notes     []string
	Resources []struct {
		Type                         string
		Allocations, Frees, Reallocs uint64
		Live, Allocated, Freed       topAmount
	}
	Processes []struct {
		PID   int
		Name  string
		Ended bool
		Execs int
	}
	Rows []struct {
		Text, Function, File, Library string
		Live, Allocated, Freed        topAmount
		Stack                         []string
	}
	OtherRows int `json:"other_rows"`
}

type topAmount struct{ Blocks, Bytes uint64 }

// topLines returns the lines of JSON. The last one must be marked as such, and no other.
func topLines(t *testing.T, text []byte) (all []topLine) {
	t.Helper()
	for line := range strings.Lines(string(text)) {
		var x topLine
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		all = append(all, x)
	}
	for i := range all {
		if all[i].Final != (i == len(all)-1) {
			t.Fatalf("line %d of %d: final is %v", i+1, len(all), all[i].Final)
		}
	}
	if len(all) == 0 {
		t.Fatal("no line")
	}
	return all
}

// startTop runs top on processes, and waits until the probes are attached.
func startTop(t *testing.T, args ...string) *running {
	t.Helper()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	cmd := command(t, append([]string{"top", "--ready-file", ready}, args...)...)
	cmd.Dir = dir
	return startIn(t, cmd, dir, ready)
}

// loggedAmounts returns what a program has allocated and freed, and what is left, according to its
// own log.
func loggedAmounts(reports ...*testutil.Report) (allocated, freed, live topAmount) {
	for _, r := range reports {
		sizes := map[uint64]uint64{}
		for _, c := range r.Done() {
			if c.Op != "alloc" {
				freed.Blocks++
				freed.Bytes += sizes[c.Old]
			}
			if c.Op != "free" {
				allocated.Blocks++
				allocated.Bytes += c.Size
				sizes[c.Ptr] = c.Size
			}
		}
		for _, c := range r.Live() {
			live.Blocks++
			live.Bytes += c.Size
		}
	}
	return allocated, freed, live
}

// The last line has what the program logged: in all, and by call site.
func TestTopFigures(t *testing.T) {
	for _, by := range []string{"site", "function", "thread", "size"} {
		t.Run(by, func(t *testing.T) {
			child := waiting(t, "phases", "3", "50")
			r := startTop(t, "-p", fmt.Sprint(child.PID), "--json", "--by", by, "--interval", "100ms")
			for range 3 {
				child.Go()
				child.Ready()
			}
			child.Go()
			child.Succeed()
			r.ends(cli.OK)
			allocated, freed, live := loggedAmounts(child.Report())
			last := topLines(t, r.Output())
			x := last[len(last)-1]
			if m := x.Resources[0]; len(x.Resources) != 1 || m.Type != "memory" || m.Allocated != allocated || m.Freed != freed || m.Live != live || m.Allocations != allocated.Blocks {
				t.Errorf("%+v\nwant %v allocated, %v freed, %v live", x.Resources, allocated, freed, live)
			}
			var sum topAmount
			for _, row := range x.Rows {
				sum.Blocks += row.Live.Blocks
				sum.Bytes += row.Live.Bytes
				if by == "function" && !strings.HasPrefix(row.Function, "do_malloc") && row.Function != "main" {
					t.Errorf("a row of %q", row.Function)
				}
			}
			if sum != live || x.OtherRows != 0 {
				t.Errorf("rows have %v live, want %v", sum, live)
			}
			if p := x.Processes; len(p) != 1 || p[0].PID != child.PID || !p[0].Ended || p[0].Name != "phases" {
				t.Errorf("%+v", p)
			}
			if len(r.Stderr()) > 0 {
				t.Errorf("standard error:\n%s", r.Stderr())
			}
		})
	}
}

// After -n tables top ends, and the process runs on without probes.
func TestTopEnds(t *testing.T) {
	child := waiting(t, "phases", "1", "5")
	got := finish(t, command(t, "top", "-p", fmt.Sprint(child.PID), "--batch", "-n", "2", "--interval", "100ms"))
	if got.code != 0 || got.stderr != "" || strings.Count(got.stdout, "process "+fmt.Sprint(child.PID)+" (phases), traced for ") != 2 {
		t.Errorf("exit code %d\n%s%s", got.code, got.stderr, got.stdout)
	}
	child.Go()
	child.Ready()
	child.Go()
	child.Succeed()
}

// Ctrl-C ends top with a last table.
func TestTopInterrupted(t *testing.T) {
	child := waiting(t, "phases", "1", "5")
	r := startTop(t, "-p", fmt.Sprint(child.PID), "--json", "--interval", "1h")
	child.Go()
	child.Ready()
	r.Signal(syscall.SIGINT)
	r.ends(cli.OK)
	all := topLines(t, r.Output())
	child.Go()
	child.Succeed()
	allocated, _, live := loggedAmounts(child.Report())
	if len(all) != 1 || all[0].Resources[0].Live != live || all[0].Resources[0].Allocated != allocated {
		t.Errorf("%+v, want %v live", all, live)
	}
}

// If the process executes another program, the blocks of the first one are gone, and the
// lines report that.
func TestTopExec(t *testing.T) {
	child := waiting(t, "exec", "10", testutil.Build(t, "exec"), "20", "/bin/true")
	r := startTop(t, "-p", fmt.Sprint(child.PID), "--json", "--interval", "100ms")
	child.Go()
	child.Ready() // the second program
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	all := topLines(t, r.Output())
	x := all[len(all)-1]
	if p := x.Processes; len(p) != 1 || p[0].Execs != 2 || p[0].Name != "true" || !p[0].Ended {
		t.Errorf("%+v", p)
	}
	if !strings.Contains(strings.Join(x.Notes, "\n"), "executed another program") {
		t.Errorf("notes %q", x.Notes)
	}
	if m := x.Resources[0]; m.Allocations < 30 || m.Live.Blocks >= 30 {
		t.Errorf("%+v", m)
	}
}

// Lost events are in the last table and in the exit status.
func TestTopLoses(t *testing.T) {
	const pairs = 200_000
	child := waiting(t, "loop", "1", strconv.Itoa(pairs))
	r := startTop(t, "-p", fmt.Sprint(child.PID), "--batch", "--ring-size", "64k", "--interval", "1h")
	r.Signal(syscall.SIGSTOP)
	child.Go()
	child.Succeed()
	r.Signal(syscall.SIGCONT)
	r.ends(cli.Incomplete)
	for _, want := range []string{"(loop), ended, traced for", "(ring full ", "events were lost: a block whose free is among them counts as live"} {
		if !strings.Contains(string(r.Output()), want) {
			t.Errorf("no %q in\n%s", want, r.Output())
		}
	}
	r.says("note: ")
	r.says("events were lost (ring full ")
}

// Several processes are added up.
func TestTopOfSeveral(t *testing.T) {
	first, second := waiting(t, "phases", "1", "5"), waiting(t, "phases", "2", "7")
	r := startTop(t, "-p", list(first, second), "--json", "--interval", "1h")
	for i, child := range []*testutil.Child{first, second} {
		for range i + 1 {
			child.Go()
			child.Ready()
		}
		child.Go()
		child.Succeed()
	}
	r.ends(cli.OK)
	all := topLines(t, r.Output())
	allocated, freed, live := loggedAmounts(first.Report(), second.Report())
	x := all[len(all)-1]
	if m := x.Resources[0]; m.Allocated != allocated || m.Freed != freed || m.Live != live {
		t.Errorf("%+v\nwant %v allocated, %v freed, %v live", m, allocated, freed, live)
	}
	if len(x.Processes) != 2 || !x.Processes[0].Ended || !x.Processes[1].Ended {
		t.Errorf("%+v", x.Processes)
	}
}

// No name of the process reaches the terminal as it is.
func TestTopHostileNames(t *testing.T) {
	program := filepath.Join(t.TempDir(), "a\x1b[31mb\u202ec")
	testutil.NeedBPF(t)
	if out, err := exec.Command("cp", testutil.Build(t, "phases"), program).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	child := testutil.Spawn(t, program, "1", "5")
	child.Ready()
	for _, args := range [][]string{{"--batch"}, {"--batch", "--by", "library"}, {"--json"}} {
		r := startTop(t, append(args, "-p", fmt.Sprint(child.PID), "--interval", "1h")...)
		r.Signal(syscall.SIGINT)
		r.ends(cli.OK)
		if text := string(r.Output()); strings.ContainsAny(text, "\x1b\u202e") || !strings.Contains(text, "31mb") {
			t.Errorf("%q: %q", args, text)
		}
	}
	child.Go()
	child.Ready()
	child.Go()
	child.Succeed()
}

func TestTopMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"top":                              "rtrace-bpf top: nothing is selected; name a process with -p PID, all of a kind with --comm, --cgroup or --uid, or a command after --",
		"top --wait -p 1":                  "rtrace-bpf top: --wait is for a process that does not run yet: leave -p out",
		"top --wait --comm x -- true":      "rtrace-bpf top: --wait is for a process that somebody else starts: a command after -- is traced from its start without it",
		"top -p 1 -- true":                 "rtrace-bpf top: a command is traced alone: leave -p, --comm, --cgroup and --uid out",
		"top --":                           "rtrace-bpf top: the command is missing: write it after --",
		"top 4711":                         "rtrace-bpf top: 4711: did you mean -p 4711?",
		"top -p 1 --by x":                  "rtrace-bpf top: --by x: not one of site, function, file, library, thread, size",
		"top -p 1 --sort grwoth":           "rtrace-bpf top: --sort grwoth: not one of live, growth, rate, count; did you mean --sort growth?",
		"top -p 1 --interval 5":            "rtrace-bpf top: --interval 5: a time needs a unit; did you mean --interval 5s?",
		"top -p 1 --interval 5ms":          "rtrace-bpf top: --interval: the time is too short; write 100ms or more",
		"top -p 1 -n 0":                    "rtrace-bpf top: -n 0: the number is too small; write one from 1 on",
		"top -p 1 --format jsonl":          "rtrace-bpf top: unknown flag --format",
		"top -p 1 --bacth":                 "rtrace-bpf top: unknown flag --bacth; did you mean --batch?",
		"top -p 1 --ring-size 3M":          "rtrace-bpf top: --ring-size 3M: not a power of two from 64K to 256M; write one as 8M",
		"top -p 1 --allocator jemaloc":     "rtrace-bpf top: --allocator jemaloc: did you mean --allocator jemalloc?",
		"top -p 1 --max-processes 5":       "rtrace-bpf top: --max-processes goes with --follow-forks",
		"top -p 1 --depth 1000":            "rtrace-bpf top: --depth 1000: the number is too large; write one from 0 to 512",
		"top -p 2147483647 --batch --json": "rtrace-bpf top: process 2147483647 does not exist",
	} {
		_, errOut, code := ran(t, strings.Fields(args)...)
		first, _, _ := strings.Cut(errOut, "\n")
		if first != want && !strings.HasPrefix(args, "top -p 2147483647") || code == cli.OK {
			t.Errorf("%s: exit code %d\n got %s\nwant %s", args, code, first, want)
		}
	}
}

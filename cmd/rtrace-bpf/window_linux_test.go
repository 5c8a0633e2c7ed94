package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// phased is a program with phases, some of which are traced.
type phased struct {
	*running
	program *testutil.Child
	rounds  int
}

// phases starts a program with n phases and records it.
func phases(t *testing.T, n, rounds int, args ...string) *phased {
	t.Helper()
	child := waiting(t, "phases", strconv.Itoa(n), strconv.Itoa(rounds))
	return &phased{start(t, child, args...), child, rounds}
}

// next lets the program run its next phase.
func (p *phased) next() {
	p.program.Go()
	p.program.Ready()
}

// ask runs the command with a request to the tracer, checks its exit code, and returns its
// standard error.
func (p *phased) ask(code cli.ExitCode, args ...string) string {
	p.t.Helper()
	got := finish(p.t, command(p.t, args...))
	if got.code != int(code) {
		p.t.Fatalf("%v: exit code %d, want %d\n%s%s", args, got.code, code, got.stderr, p.Stderr())
	}
	return got.stderr
}

func (p *phased) toggle() {
	p.t.Helper()
	p.ask(cli.OK, "--toggle", fmt.Sprint(p.program.PID))
}

// path returns the path of the trace of a window, counted from 0.
func (p *phased) path(window int) string {
	return numbered(p.dir, p.program.PID, window)
}

func numbered(dir string, pid, n int) string {
	return filepath.Join(dir, fmt.Sprintf("rtrace-raw-%d-%d", pid, n))
}

// holds fails the test unless the trace of a window has exactly the calls of these phases
// that the program logged.
func (p *phased) holds(window int, report *testutil.Report, phases ...int) {
	p.t.Helper()
	var want, got []string
	own := map[uint64]bool{}
	for _, c := range report.Calls {
		switch phase := int(c.Size) - 1000; {
		case c.Op == "alloc" && slices.Contains(phases, phase):
			own[c.Ptr] = true
			want = append(want, fmt.Sprintf("malloc(%d) = %#x", c.Size, c.Ptr))
		case c.Op == "alloc":
			delete(own, c.Ptr)
		case own[c.Old]:
			want = append(want, fmt.Sprintf("free(%#x)", c.Old))
		}
	}
	for _, rec := range load(p.t, p.path(window)) {
		c := &rec.Call
		switch {
		case rec.Kind != trace.KindCall:
		case c.Op == trace.OpFree:
			got = append(got, fmt.Sprintf("free(%#x)", c.ID))
		default:
			got = append(got, fmt.Sprintf("%s(%d) = %#x", c.Function, c.Size, c.ID))
		}
	}
	if len(want) != len(phases)*(2*p.rounds-1) {
		p.t.Fatalf("%d calls in the program's log of phases %v", len(want), phases)
	}
	if !slices.Equal(got, want) {
		p.t.Errorf("window %d: %d calls in the trace, %d in the log of phases %v\n%.300v\n%.300v", window, len(got), len(want), phases, got, want)
	}
}

// Signals and other runs of rtrace-bpf switch tracing off and on. Each window has its own
// complete file with exactly the calls in it, and between windows the process has no
// probes.
func TestWindows(t *testing.T) {
	p := phases(t, 7, 50)
	p.next() // 0, traced
	p.toggle()
	testutil.BecomesOriginal(t, p.program.PID)
	p.next() // 1
	p.toggle()
	p.next() // 2, traced
	p.Signal(unix.SIGUSR1)
	testutil.WaitFile(t, p.path(1)+".side", p.Child)
	p.next() // 3
	p.Signal(unix.SIGUSR1)
	testutil.WaitFile(t, p.path(2), p.Child)
	p.ask(cli.OK, "--mark", fmt.Sprint(p.program.PID), "on") // answered when the probes are in
	p.next()                                                 // 4, traced
	p.toggle()
	p.next() // 5
	p.toggle()
	p.next() // 6, traced
	p.program.Go()
	report := p.program.Report()
	p.ends(cli.OK)
	for window, phase := range []int{0, 2, 4, 6} {
		p.holds(window, report, phase)
	}
	if _, err := os.Stat(p.path(4)); err == nil {
		t.Error("a fifth trace")
	}
	p.counts("4 traces,", 200, 196)
	p.says("tracing is off")
}

// Before tracing is switched on, no probe is attached. A recording that is off ends when
// the process ends, at Ctrl-C, and after --duration.
func TestStartPaused(t *testing.T) {
	for name, end := range map[string]func(p *phased){
		"process": func(p *phased) {
			p.program.Go()
			p.program.Succeed()
		},
		"signal": func(p *phased) { p.Signal(unix.SIGINT) },
	} {
		t.Run(name, func(t *testing.T) {
			p := phases(t, 3, 10, "--start-paused")
			p.next()
			p.ask(cli.Failed, "--mark", fmt.Sprint(p.program.PID), "early")
			p.toggle()
			p.next()
			p.toggle()
			p.next()
			end(p)
			p.ends(cli.OK)
			if name == "process" {
				p.holds(0, p.program.Report(), 1)
			}
			if all, err := filepath.Glob(filepath.Join(p.dir, "rtrace-raw-*[0-9]")); err != nil || len(all) != 1 {
				t.Errorf("traces %v, %v", all, err)
			}
		})
	}
	t.Run("duration", func(t *testing.T) {
		p := phases(t, 1, 10, "--start-paused", "--duration", "100ms")
		p.ends(cli.OK)
	})
}

// In each format that has a place for marks, a mark stands between the calls before and
// after it.
func TestMarks(t *testing.T) {
	for _, format := range []string{"sprtrace", "jsonl"} {
		t.Run(format, func(t *testing.T) {
			p := phases(t, 3, 5, "--format", format, "-o", "out")
			p.next()
			if answer := p.ask(cli.OK, "--mark", fmt.Sprint(p.program.PID), "loaded: all"); !strings.Contains(answer, `mark "loaded: all" is set in out`) {
				t.Errorf("the command prints %q", answer)
			}
			p.next()
			p.Signal(unix.SIGUSR2)
			p.ask(cli.OK, "--mark", fmt.Sprint(p.program.PID), "second")
			p.next()
			p.program.Go()
			p.program.Succeed()
			p.ends(cli.OK)
			var got []string
			for _, rec := range load(t, filepath.Join(p.dir, "out")) {
				text := ""
				switch rec.Kind {
				case trace.KindContext:
					text = rec.Context.Name
					if rec.Context.ID != 0 {
						t.Errorf("mark %q has the bit %d", text, rec.Context.ID)
					}
				case trace.KindCall:
					if rec.Call.Op != trace.OpAlloc {
						continue
					}
					text = fmt.Sprint(rec.Call.Size)
				}
				if text != "" && (len(got) == 0 || got[len(got)-1] != text) {
					got = append(got, text)
				}
			}
			// The signal may arrive after the later request.
			slices.Sort(got[min(len(got), 3):max(min(len(got), 3), len(got)-1)])
			if want := []string{"1000", "loaded: all", "1001", "mark 1", "second", "1002"}; !slices.Equal(got, want) {
				t.Errorf("sizes and marks %q, want %q", got, want)
			}
		})
	}
}

// TestRefusedRequests checks that impossible requests are refused with a message and change
// nothing.
func TestRefusedRequests(t *testing.T) {
	p := phases(t, 2, 10, "-o", "out")
	pid := fmt.Sprint(p.program.PID)
	p.next()
	p.toggle()
	if answer := p.ask(cli.Failed, "--toggle", pid); !strings.Contains(answer, "-o out takes one trace") {
		t.Errorf("the command prints %q", answer)
	}
	if answer := p.ask(cli.Failed, "--mark", pid, "x"); !strings.Contains(answer, "tracing is off") {
		t.Errorf("the command prints %q", answer)
	}
	if answer := p.ask(cli.Failed, "--toggle", fmt.Sprint(os.Getpid())); !strings.Contains(answer, "not traced by a rtrace-bpf") {
		t.Errorf("the command prints %q", answer)
	}
	p.next()
	p.program.Go()
	report := p.program.Report()
	p.ends(cli.OK)
	records := load(t, filepath.Join(p.dir, "out"))
	if n := count(records, "malloc"); n != 10 || len(report.Calls) == 0 {
		t.Errorf("%d calls of malloc, want 10", n)
	}
	for name, args := range map[string][]string{
		"name the mark": {"--mark", pid}, "one of --toggle and --mark": {"--mark", pid, "--toggle", pid, "x"},
		"control characters": {"--mark", pid, "a\nb"}, "not a process ID": {"--toggle", "-1"}, "belongs to no flag": {"--toggle", pid, "x"},
		"at most 255": {"--mark", pid, strings.Repeat("x", 256)},
	} {
		if got := finish(t, command(t, args...)); got.code != int(cli.Usage) || name != "name the mark" && !strings.Contains(got.stderr, name) {
			t.Errorf("%v: exit code %d: %s", args, got.code, got.stderr)
		}
	}
}

// All processes are switched together, except those that have ended.
func TestWindowsOfSeveral(t *testing.T) {
	first, second := waiting(t, "phases", "3", "4"), waiting(t, "phases", "3", "4")
	r := startOn(t, "-p", list(first, second), "--start-paused")
	p := &phased{r, second, 4}
	p.toggle()
	for _, child := range []*testutil.Child{first, second} {
		child.Go()
		child.Ready()
	}
	p.toggle()
	first.Close()
	first.Wait()
	p.next()
	p.toggle()
	p.next()
	second.Go()
	report := second.Report()
	p.ends(cli.OK)
	p.holds(0, report, 0)
	p.holds(1, report, 2)
	if n := count(load(t, numbered(r.dir, first.PID, 0)), "malloc"); n != 4 {
		t.Errorf("%d calls of malloc in the first trace, want 4", n)
	}
	if _, err := os.Stat(numbered(r.dir, first.PID, 1)); err == nil {
		t.Error("a second trace of a process that had ended")
	}
}

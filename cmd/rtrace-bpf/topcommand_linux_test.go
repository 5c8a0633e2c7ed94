package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// A command is traced from its first call, and its output is on standard error, not among the
// tables.
func TestTopCommand(t *testing.T) {
	testutil.NeedBPF(t)
	got := finish(t, command(t, "top", "--json", "--interval", "1h", "--", testutil.Build(t, "launch")))
	report, err := testutil.ParseReport([]byte(got.stderr))
	if err != nil || got.code != 0 {
		t.Fatalf("exit code %d, %v\n%s", got.code, err, got.stderr)
	}
	allocated, freed, live := loggedAmounts(report)
	lines := topLines(t, []byte(got.stdout))
	x := lines[len(lines)-1]
	if m := x.Resources[0]; m.Allocated != allocated || m.Freed != freed || m.Live != live {
		t.Errorf("%+v\nwant %v allocated, %v freed, %v live", m, allocated, freed, live)
	}
}

// The exit status is that of the command, or reports why there is none.
func TestTopCommandStatus(t *testing.T) {
	testutil.NeedBPF(t)
	for name, test := range map[string]struct {
		flags []string
		argv  []string
		code  int
		says  string
	}{
		"success":      {nil, []string{"true"}, 0, ""},
		"failure":      {nil, []string{"sh", "-c", "exit 7"}, 7, ""},
		"killed":       {nil, []string{"sh", "-c", "kill -9 $$"}, 137, ""},
		"enough":       {[]string{"-n", "1", "--interval", "100ms"}, []string{"sh", "-c", "sleep 1; exit 9"}, 9, ""},
		"not found":    {nil, []string{"/no/such"}, 127, "rtrace-bpf top: start /no/such: command not found"},
		"no allocator": {nil, []string{testutil.BuildText(t, "void _start(void) { for (;;) __builtin_trap(); }", "-static", "-nostdlib")}, 125, "has no"},
		"wrong flag":   {[]string{"--nope"}, []string{"true"}, 125, "unknown flag"},
	} {
		t.Run(name, func(t *testing.T) {
			got := finish(t, command(t, slices.Concat([]string{"top", "--batch"}, test.flags, []string{"--"}, test.argv)...))
			if got.code != test.code || !strings.Contains(got.stderr, test.says) || test.says == "" && got.stderr != "" {
				t.Errorf("exit code %d, want %d with %q\n%s", got.code, test.code, test.says, got.stderr)
			}
		})
	}
}

// The next process of a name is traced from its first call.
func TestTopWaits(t *testing.T) {
	testutil.NeedBPF(t)
	path, comm := renamed(t, testutil.Build(t, "launch"), "t")
	r := startTop(t, "--wait", "--comm", comm, "--json", "--interval", "1h")
	child := testutil.Spawn(t, path)
	child.Succeed()
	r.ends(cli.OK)
	r.says("waiting for the next process named " + comm)
	allocated, freed, live := loggedAmounts(child.Report())
	lines := topLines(t, r.Output())
	x := lines[len(lines)-1]
	if m := x.Resources[0]; m.Allocated != allocated || m.Freed != freed || m.Live != live {
		t.Errorf("%+v\nwant %v allocated, %v freed, %v live", m, allocated, freed, live)
	}
}

// Ctrl-C ends the wait.
func TestTopWaitsInVain(t *testing.T) {
	testutil.NeedBPF(t)
	r := startTop(t, "--wait", "--comm", "no such process", "--batch")
	r.Signal(os.Interrupt)
	r.ends(cli.Failed)
	r.says("rtrace-bpf top: no process named no such process was started\n")
}

// What the command prints does not reach the screen, and quitting ends the command.
func TestTopCommandScreen(t *testing.T) {
	testutil.NeedBPF(t)
	x := openTop(t, 80, 24, "--", "sh", "-c", "echo noise; cat; echo more noise >&2; sleep 1000000 & wait")
	x.await(`process \d+ \(sh\)`)
	x.keys("q")
	if code := x.status(); code != 128+15 {
		t.Errorf("exit status %d", code)
	}
	if screen := x.await(`the output of the command is in rtrace-top-sh-0\.out`); strings.Contains(screen, "noise") {
		t.Errorf("the output is on the screen:\n%s", screen)
	}
	text, err := os.ReadFile(filepath.Join(x.dir, "rtrace-top-sh-0.out"))
	if err != nil || !strings.HasPrefix(string(text), "noise\nmore noise\n") {
		t.Errorf("%v\n%s", err, text)
	}
}

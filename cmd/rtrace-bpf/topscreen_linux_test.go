package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/pprof/profile"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/internal/topview"
)

// terminal is a tmux with one window, in which top runs.
type terminal struct {
	t             *testing.T
	tmux          string
	dir           string // current directory of top
	width, height int
}

// inTerminal is a script that runs a command, writes its process ID and exit status to files,
// and keeps the terminal open.
const inTerminal = `sh -c 'echo $$ > pid; exec "$@"' sh "$@"; echo $? > .status; mv .status status; exec cat`

// openTerminal runs top on a process in a terminal of the given size, until the test ends.
func openTerminal(t *testing.T, width, height int, child *testutil.Child, args ...string) *terminal {
	t.Helper()
	return openTop(t, width, height, append([]string{"-p", fmt.Sprint(child.PID)}, args...)...)
}

// openTop does the same on what args select.
func openTop(t *testing.T, width, height int, args ...string) *terminal {
	t.Helper()
	return openWith(t, width, height, inTerminal, nil, args...)
}

// openWith runs top by a script, in an environment that has variables in addition.
func openWith(t *testing.T, width, height int, script string, variables []string, args ...string) *terminal {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, tmux: testutil.Installed(t, "tmux"), dir: t.TempDir(), width: width, height: height}
	config := filepath.Join(x.dir, "config")
	if err := os.WriteFile(config, []byte("set -g status off\nset -s escape-time 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := []string{
		"-u", "-f", config, "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "-c", x.dir, "--",
		"env", "-u", "NO_COLOR", "LC_ALL=C.UTF-8", asCommand + "=1",
	}
	command = append(append(command, variables...), "sh", "-c", script, "sh", exe, "top", "--interval", "100ms")
	x.run(append(command, args...)...)
	t.Cleanup(func() { x.run("kill-server") })
	return x
}

// run runs a command of tmux, and returns what it prints.
func (x *terminal) run(args ...string) string {
	x.t.Helper()
	cmd := exec.Command(x.tmux, append([]string{"-S", filepath.Join(x.dir, "socket")}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// screen returns the lines of the screen, and those that have scrolled off it.
func (x *terminal) screen() string { return x.run("capture-pane", "-p", "-S", "-") }

// await waits until the screen matches all patterns, and returns it.
func (x *terminal) await(patterns ...string) string {
	x.t.Helper()
	var all []*regexp.Regexp
	for _, p := range patterns {
		all = append(all, regexp.MustCompile(p))
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		screen, fits := x.screen(), true
		for _, re := range all {
			fits = fits && re.MatchString(screen)
		}
		switch {
		case fits:
			return screen
		case x.late():
			x.t.Fatalf("the last screen does not match %q:\n%s", patterns, screen)
		}
		<-tick.C
	}
}

// late reports whether the time for tests is nearly over.
func (x *terminal) late() bool {
	end, ok := x.t.Deadline()
	return ok && time.Until(end) < 10*time.Second
}

// keys presses keys.
func (x *terminal) keys(keys ...string) {
	x.t.Helper()
	x.run(append([]string{"send-keys"}, keys...)...)
}

// status waits for the end of top, and returns its exit status.
func (x *terminal) status() int {
	x.t.Helper()
	testutil.WaitFile(x.t, filepath.Join(x.dir, "status"), nil)
	return x.number("status")
}

// number reads a number that the script has written to a file.
func (x *terminal) number(file string) int {
	x.t.Helper()
	text, err := os.ReadFile(filepath.Join(x.dir, file))
	if err != nil {
		x.t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		x.t.Fatal(err)
	}
	return n
}

// golden returns a screen with figures that differ between runs replaced.
func golden(screen string) string {
	for _, r := range []struct{ pattern, with string }{
		{`process \d+ `, "process PID "},
		{`\d\d:\d\d:\d\d`, "TIME"},
		{`RSS \S+ \S+  `, "RSS SIZE  "},
		{`allocates .*calls/s`, "RATES"},
		{`tracing costs .*  lost`, "COST  lost"},
		{` +[+-]?[\d.]+ [KM]?i?B +([▁▂▃▄▅▆▇█ ]{8}) (do_malloc|main) .*`, "  GROWTH  BARS  FUNCTION"},
	} {
		screen = regexp.MustCompile(r.pattern).ReplaceAllString(screen, r.with)
	}
	var lines []string
	for line := range strings.Lines(screen) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// The screens of top, with a process whose calls are known.
func TestTopScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 60}} {
		t.Run(fmt.Sprintf("%d×%d", size[0], size[1]), func(t *testing.T) { topScreens(t, size[0], size[1]) })
	}
}

func topScreens(t *testing.T, width, height int) {
	child := waiting(t, "phases", "2", "10")
	x := openTerminal(t, width, height, child)
	screen := x.await("no call has been recorded yet", `lost 0  paused 0`)
	if lines := strings.Split(strings.TrimSuffix(screen, "\n"), "\n"); len(lines) != height || !strings.HasPrefix(lines[height-1], "q quit  enter stack") {
		t.Errorf("%d lines\n%s", len(lines), screen)
	}
	child.Go()
	child.Ready()
	screen = x.await("RSS ", `> +1000 B +1 .* (do_malloc|main) `)
	for line := range strings.Lines(screen) {
		if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > width {
			t.Errorf("a line of more than %d columns: %s", width, line)
		}
	}
	if width == 80 {
		want := "process PID (phases), traced for TIME\nRSS SIZE  live 1000 B in 1 blocks  RATES\nCOST  lost 0  paused 0\nby site, sorted by live\n" +
			"       *live   blocks     growth/s           call site\n>     1000 B        1  GROWTH  BARS  FUNCTION\n" + strings.Repeat("\n", 17) +
			"q quit  enter stack  s sort  b group  / filter  space freeze  m mark  ? all keys\n"
		if got := golden(screen); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	x.keys("Enter")
	x.await("stack, the innermost frame first", `main \(phases.c:\d+\) from `, "allocated  9.8 KiB in 10 blocks", `freed      8.8 KiB in 9 blocks`)
	x.keys("Escape")
	x.await("by site, sorted by live")
	x.keys("b")
	x.await("by function")
	x.keys("/")
	x.await("filter: _")
	x.keys("z", "z")
	x.await("filter: zz_", "no row is left")
	x.keys("Escape")
	x.await(`> +1000 B +1 `)
	x.keys("m")
	x.await("changes since the mark at", "no row is left", "mark set: ")
	child.Go()
	child.Ready()
	x.await(`> +\+1001 B +\+1 .* (do_malloc|main)`)
	x.keys("M")
	x.await(`> +2.0 KiB +2 `)
	x.keys("Space")
	x.await("FROZEN at ")
	x.keys("?")
	x.await("freeze the figures, and go on")
	x.keys("Escape")
	x.await("FROZEN at ")
	x.files(child)
	child.Go()
	child.Succeed()
	x.await("ended, traced for", "ENDED: these are the last figures")
	x.keys("q")
	if code := x.status(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	x.await(`process \d+ \(phases\), ended, traced for`, `2.0 KiB +2 .*(do_malloc|main)`) // on the screen that was there before
}

// files checks the files that keys write.
func (x *terminal) files(child *testutil.Child) {
	t, name := x.t, fmt.Sprintf("rtrace-top-%d-0", child.PID)
	t.Helper()
	x.keys("w")
	x.await("wrote .*" + name + ".txt")
	text, err := os.ReadFile(filepath.Join(x.dir, name+".txt"))
	if err != nil || !strings.Contains(string(text), "live 2.0 KiB in 2 blocks") {
		t.Errorf("%v\n%s", err, text)
	}
	x.keys("J")
	x.await("wrote .*" + name + ".json")
	object, err := os.ReadFile(filepath.Join(x.dir, name+".json"))
	if err != nil || !strings.Contains(string(object), `"live":{"blocks":2,"bytes":2001}`) {
		t.Errorf("%v\n%s", err, object)
	}
	x.keys("p")
	x.await("wrote .*" + name + ".pb.gz")
	packed, err := os.ReadFile(filepath.Join(x.dir, name+".pb.gz"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	for _, s := range p.Sample {
		for i, v := range s.Value {
			sums[p.SampleType[i].Type] += v
		}
	}
	if sums["inuse_space"] != 2001 || sums["inuse_objects"] != 2 || sums["alloc_space"] != 10*1000+10*1001 || sums["alloc_objects"] != 20 {
		t.Errorf("%v", sums)
	}
}

// A process that executes another program, and lost events, are on the screen and in the
// exit status.
func TestTopScreenOfTrouble(t *testing.T) {
	t.Run("exec", func(t *testing.T) {
		testutil.Installed(t, "tmux")
		child := waiting(t, "exec", "10", testutil.Build(t, "exec"), "20", "/bin/true")
		x := openTerminal(t, 80, 24, child)
		x.await("no call has been recorded yet")
		child.Go()
		child.Ready()
		x.await(`executed another program: the blocks of the one before are gone`)
		child.Go()
		child.Succeed()
		x.await("ENDED: ")
		x.keys("C-c")
		if code := x.status(); code != 0 {
			t.Errorf("exit status %d", code)
		}
		x.await(`\(true\), ended, traced for`, "executed another program")
	})
	t.Run("losses", func(t *testing.T) {
		testutil.Installed(t, "tmux")
		child := waiting(t, "loop", "1", "200000")
		x := openTerminal(t, 80, 24, child, "--ring-size", "64k")
		x.await("no call has been recorded yet")
		pid := x.number("pid")
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		child.Go()
		child.Succeed()
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		x.await("ENDED: ", `ring full \d+`, "events were lost: a block whose free is among them counts as live")
		x.keys("q")
		if code := x.status(); code != 3 {
			t.Errorf("exit status %d", code)
		}
		x.await("note: .*events")
	})
}

// Colours add nothing that is not in the text, and can be switched off.
func TestTopColours(t *testing.T) {
	for style := topview.Plain; style <= topview.Warning; style++ {
		for _, colours := range []bool{false, true} {
			x := topScreen{colours: colours}
			got := x.styled(topview.Line{Text: "text", Style: style})
			if !strings.Contains(got, "text") || strings.Contains(got, "\x1b[3") != (colours && style == topview.Warning) {
				t.Errorf("style %d, colours %v: %q", style, colours, got)
			}
		}
	}
}

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/testutil"
)

// onePair is the row of the program phases after its first phase.
const onePair = `> +1000 B .*(do_malloc|main) `

// The screen is the same in every terminal that can show one. Without UTF-8, it has only ASCII
// characters.
func TestTopTerminals(t *testing.T) {
	testutil.Installed(t, "tmux")
	child := waiting(t, "phases", "1", "10")
	screens := map[string]*terminal{}
	for _, variables := range []string{
		"TERM=xterm-256color", "TERM=screen", "TERM=linux", "TERM=vt100", "TERM=xterm NO_COLOR=1", "TERM=linux LC_ALL=C",
	} {
		screens[variables] = openWith(t, 80, 24, inTerminal, strings.Fields(variables), "-p", fmt.Sprint(child.PID))
	}
	for _, x := range screens {
		x.await("no call has been recorded yet")
	}
	child.Go()
	child.Ready()
	want := ""
	for variables, x := range screens {
		screen := x.await("RSS ", onePair)
		if ascii := strings.Contains(variables, "LC_ALL=C"); ascii != (len(screen) == utf8.RuneCountInString(screen)) {
			t.Errorf("%s:\n%s", variables, screen)
		} else if ascii {
			continue
		}
		got := golden(screen)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%s:\n%s\nin another terminal\n%s", variables, got, want)
		}
	}
	child.Go()
	child.Succeed()
	for variables, x := range screens {
		x.await("ENDED: ")
		x.keys("q")
		if code := x.status(); code != 0 {
			t.Errorf("%s: exit status %d", variables, code)
		}
	}
}

// A terminal may become larger and smaller, whatever is shown.
func TestTopResized(t *testing.T) {
	testutil.Installed(t, "tmux")
	child := waiting(t, "phases", "1", "10")
	x := openTerminal(t, 80, 24, child)
	x.await("no call has been recorded yet")
	child.Go()
	child.Ready()
	x.await(onePair)
	x.resize(40, 10)
	x.await(`(?m)^> +1000 B  (do_malloc|main) `, `(?m)^ +\*live  call site`)
	x.keys("Enter")
	x.await(`(?m)^live +1000 B`, "(?m)^esc back ")
	x.resize(200, 60)
	x.await("stack, the innermost frame first", `main \(phases.c:\d+\) from `, "lifetimes of freed blocks", "(?m)^esc back ")
	x.resize(20, 5)
	x.await("(?m)^esc back …")
	x.resize(80, 24)
	x.await("stack, the innermost frame first")
	x.keys("Escape")
	x.await(onePair)
	child.Go()
	child.Succeed()
	x.await("ENDED: ")
}

// resize makes the terminal larger or smaller, and waits until the screen fills it.
func (x *terminal) resize(width, height int) {
	x.t.Helper()
	x.run("resize-window", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height))
	x.width, x.height = width, height
	for screen := x.await("."); ; screen = x.await(".") {
		lines := strings.Split(strings.TrimSuffix(screen, "\n"), "\n")
		last := lines[len(lines)-1]
		if len(lines) == height && (strings.HasPrefix(last, "q quit") || strings.HasPrefix(last, "esc back")) {
			return
		}
		if x.late() {
			x.t.Fatalf("the last screen with %d lines does not fill the terminal:\n%s", len(lines), screen)
		}
	}
}

// inShell is a script that runs a command as an interactive shell does, and continues it when a
// line is typed after it was stopped.
const inShell = `set -m; "$@"; echo "stopped with $?"; read -r line; fg; echo $? > .status; mv .status status; exec cat`

// Ctrl-Z leaves the terminal to the shell, and fg shows the screen again.
func TestTopSuspended(t *testing.T) {
	testutil.Installed(t, "tmux")
	child := waiting(t, "phases", "1", "10")
	x := openWith(t, 80, 24, inShell, nil, "-p", fmt.Sprint(child.PID))
	x.await("no call has been recorded yet")
	x.keys("C-z")
	x.await("stopped with 148") // by SIGTSTP
	child.Go()
	child.Ready()
	x.keys("Enter")
	x.await(onePair, "lost 0  paused 0")
	child.Go()
	child.Succeed()
	x.await("ENDED: ")
	x.keys("q")
	if code := x.status(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// When its terminal goes away, as an ssh connection does that breaks, top ends and takes its probes
// out.
func TestTopHungUp(t *testing.T) {
	testutil.Installed(t, "tmux")
	child := waiting(t, "phases", "1", "10")
	x := openTerminal(t, 80, 24, child, "--verbose")
	x.await("no call has been recorded yet")
	fd, err := unix.PidfdOpen(x.number("pid"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	x.run("new-window", "-d", "cat") // the server goes on
	x.run("kill-pane")
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); err != nil {
		t.Fatal(err)
	}
	testutil.BecomesOriginal(t, child.PID)
	if all, _ := filepath.Glob(filepath.Join(x.dir, "rtrace-*")); len(all) > 0 {
		t.Errorf("files were left: %q", all)
	}
	child.Go()
	child.Ready()
	child.Go()
	child.Succeed()
}

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/topview"
)

// topUntil reads tables of top --json until one satisfies done, and returns that.
func topUntil(t testing.TB, tables *bufio.Reader, done func(x *suspectLine) bool) *suspectLine {
	t.Helper()
	for range mostTables {
		x := new(suspectLine)
		line, err := tables.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, x)
		}
		if err != nil {
			t.Fatalf("%v after %q", err, line)
		}
		if done(x) {
			return x
		}
	}
	t.Fatalf("%d tables", mostTables)
	return nil
}

// beginTop starts top --json on a process.
func beginTop(t testing.TB, pid int) (cmd *exec.Cmd, tables *bufio.Reader, stderr *bytes.Buffer) {
	t.Helper()
	cmd = command(t, "top", "-p", fmt.Sprint(pid), "--json", "--interval", "100ms")
	stderr = new(bytes.Buffer)
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out), stderr
}

// The summary, top, leaks and the page of one run name the same first suspect.
func TestSameSuspect(t *testing.T) {
	tool := rtrace(t)
	child := waiting(t, "suspect")
	top, tables, stderr := beginTop(t, child.PID)
	topUntil(t, tables, func(*suspectLine) bool { return true }) // its probes are attached
	r := start(t, child)
	child.Go()
	topUntil(t, tables, func(x *suspectLine) bool {
		const turnovers = 20 * 64
		_, freed := x.row("cache_put")
		return freed.Blocks >= turnovers && len(x.Suspects) > 0
	})
	child.Go()
	child.Succeed()
	last := topUntil(t, tables, func(x *suspectLine) bool { return x.Final })
	if err := top.Wait(); err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	r.ends(cli.OK)
	if len(last.Suspects) != 1 || last.Suspects[0].Function != "leak_one" {
		t.Errorf("top: %+v", last.Suspects)
	}
	line := regexp.MustCompile(`(?m)^rtrace-bpf: \d+ events: .*\n  suspect: leak_one \(suspect\.c:\d+\) < main.*: growing [\d,]+ blocks/s, .*; none of [\d,]+ freed\n  `)
	if got := string(r.Stderr()); !line.MatchString(got) {
		t.Errorf("the summary does not begin with the suspect:\n%s", got)
	}
	for text := range strings.Lines(string(r.Stderr())) {
		if strings.Contains(text, "suspect: ") && len(text)-1 > topview.TableWidth {
			t.Errorf("%d columns: %s", len(text)-1, text)
		}
	}
	run := func(args ...string) []byte {
		t.Helper()
		cmd := exec.Command(tool, append(args, fmt.Sprintf("rtrace-raw-%d-0", child.PID))...)
		cmd.Dir = r.dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out
	}
	var leaks struct {
		Growing int `json:"growing_groups"`
		Groups  []struct{ Frames []struct{ Function string } }
	}
	if err := json.Unmarshal(run("leaks", "-r", "--json"), &leaks); err != nil {
		t.Fatal(err)
	}
	if leaks.Growing != 1 || leaks.Groups[0].Frames[0].Function != "leak_one" {
		t.Errorf("leaks: %+v", leaks)
	}
	page := string(run("report", "-o", "-"))
	if first, _, _ := strings.Cut(page, "</bdi>"); !strings.HasSuffix(first, `<bdi class="mono site">leak_one`) {
		t.Errorf("the page: …%s", first[max(0, len(first)-300):])
	}
}

// Without --no-live the summary has a verdict, with it none; so does a recording that is
// too short.
func TestSummaryVerdict(t *testing.T) {
	for _, flags := range [][]string{nil, {"--no-live"}} {
		child := waiting(t, "leak")
		r := start(t, child, flags...)
		child.Go()
		child.Report()
		r.ends(cli.OK)
		if got, want := strings.Contains(string(r.Stderr()), ": too short to tell whether a call site grows steadily\n"), flags == nil; got != want {
			t.Errorf("%v:\n%s", flags, r.Stderr())
		}
	}
}

// A recording in a terminal prints lines that fit into it.
func TestReporterWidth(t *testing.T) {
	terminal := terminalOf(t, 24, 70)
	r := newReporter(&config{}, cli.Streams{Err: terminal, ErrTerminal: true}, true)
	if r.columns != 70 {
		t.Errorf("%d columns", r.columns)
	}
	if r := newReporter(&config{}, cli.Streams{Err: terminal}, false); r.columns != topview.TableWidth {
		t.Errorf("%d columns without a terminal", r.columns)
	}
}

// terminalOf returns a terminal of this size.
func terminalOf(t *testing.T, rows, columns uint16) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return terminal
}

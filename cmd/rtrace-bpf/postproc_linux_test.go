package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// built returns a folder with one of this project's programs. It skips the test in guests,
// which have no compiler.
func built(t *testing.T, name string) string {
	t.Helper()
	if testutil.GuestLacks("go") {
		t.Skip("SKIPPED: the guest has no compiler of Go")
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, "../"+name).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return dir
}

// TestPostproc checks that the post-processor, which gets the trace through a pipe, prints
// the leaks that the program reports, even if Ctrl-C ends the recording.
func TestPostproc(t *testing.T) {
	dir := built(t, "rtrace")
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	testutil.Build(t, "phases") // before the first program starts
	child := waiting(t, "leak")
	r := start(t, child, "-P", "-l -c")
	child.Go()
	report := child.Report()
	r.ends(cli.OK)
	text, err := os.ReadFile(filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.txt", child.PID)))
	if err != nil {
		t.Fatal(err)
	}
	blocks, bytes := 0, uint64(0)
	for _, n := range report.Leaks {
		bytes += n
		blocks++
	}
	if want := fmt.Sprintf("%d block(s) leaked with total size of %d bytes", blocks, bytes); !strings.Contains(string(text), want) {
		t.Errorf("no %q in\n%s", want, text)
	}
	if others, err := filepath.Glob(filepath.Join(r.dir, "rtrace-raw-*")); err != nil || len(others) != 1 {
		t.Errorf("files %v, %v", others, err)
	}
	r.says("rtrace-raw-")

	p := phases(t, 2, 10, "-P", "", "-o", "out")
	p.next()
	p.Signal(os.Interrupt)
	p.ends(cli.OK)
	if text, err = os.ReadFile(filepath.Join(p.dir, "out")); err != nil || strings.Count(string(text), " malloc(1000)") != 10 {
		t.Errorf("%v:\n%s", err, text)
	}
}

// TestPostprocFails checks that unknown options of the post-processor end the recording
// with its error, and that impossible ones are refused.
func TestPostprocFails(t *testing.T) {
	dir := built(t, "rtrace")
	child := waiting(t, "leak")
	for name, test := range map[string]struct {
		args []string
		path string
		code cli.ExitCode
		want string
	}{
		"unknown option": {[]string{"-P", "--nope"}, dir, cli.Usage, "unknown flag --nope"},
		"late error":     {[]string{"-P", "--sort size"}, dir, cli.Failed, "--sort needs --compress"},
		"no program":     {[]string{"-P", "-l"}, "/nowhere", cli.Failed, "find rtrace for postprocessing"},
		"own output":     {[]string{"-P", "-l -o x"}, dir, cli.Usage, "which -o of rtrace-bpf selects"},
		"other format":   {[]string{"-P", "-l", "--format", "mtrc"}, dir, cli.Usage, "-P goes with --format sprtrace"},
		"side file":      {[]string{"-P", "-l", "-o", "-", "--side", "x"}, dir, cli.Usage, "-P has no side file"},
	} {
		cmd := command(t, append([]string{"-p", fmt.Sprint(child.PID), "--duration", "10ms"}, test.args...)...)
		cmd.Env = append(cmd.Env, "PATH="+test.path)
		cmd.Dir = t.TempDir()
		if got := finish(t, cmd); got.code != int(test.code) || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%s: exit code %d, want %d\n%s", name, got.code, test.code, got.stderr)
		}
	}
}

// With -B, calls are in the output while the program goes on.
func TestNoBuffer(t *testing.T) {
	child := waiting(t, "phases", "2", "10")
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	cmd := command(t, "-p", fmt.Sprint(child.PID), "-B", "--format", "jsonl", "-o", "-", "--ready-file", ready)
	cmd.Stdout = out
	r := startIn(t, cmd, dir, ready)
	out.Close()
	child.Go()
	lines := bufio.NewScanner(in)
	n := 0
	for n < 10 && lines.Scan() {
		if strings.Contains(lines.Text(), `"size":1000`) {
			n++
		}
	}
	if n != 10 {
		t.Errorf("%d calls before the output ended: %v", n, lines.Err())
	}
	r.Signal(os.Interrupt)
	for lines.Scan() {
	}
	r.ends(cli.OK)
}

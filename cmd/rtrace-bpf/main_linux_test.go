package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
)

// asCommand is the environment variable that makes the test binary run as the command, so
// that tests can send it signals and give it other rights.
const asCommand = "RTRACE_BPF_TEST_RUN_COMMAND"

// inFolder returns settings under which traces are written to a folder.
func inFolder(dir string) settings {
	return surroundings(map[string]string{"SP_RTRACE_OUTPUT_DIR": dir})
}

// surroundings returns settings with these environment variables.
func surroundings(variables map[string]string) settings {
	return settings{variable: func(name string) string { return variables[name] }}
}

func TestMain(m *testing.M) {
	host.RunAsChild()
	if os.Getenv(asCommand) != "" {
		hide(os.Getenv(hiding))
		main()
	}
	testutil.Main(m)
}

// command returns the command with the given arguments, ready to be started.
func command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

// result is how a command ended, and what it printed.
type result struct {
	code           int
	stdout, stderr string
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errOut bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &errOut
	}
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// running is a command that records a process.
type running struct {
	*testutil.Child
	t   *testing.T
	dir string
}

// start runs the command on a process, with a directory of its own as the current one, and
// waits until the probes are attached.
func start(t *testing.T, child *testutil.Child, args ...string) *running {
	t.Helper()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	cmd := command(t, append([]string{"-p", fmt.Sprint(child.PID), "--ready-file", ready}, args...)...)
	cmd.Dir = dir
	return startIn(t, cmd, dir, ready)
}

func startIn(t *testing.T, cmd *exec.Cmd, dir, ready string) *running {
	t.Helper()
	r := &running{Child: testutil.Start(t, cmd), t: t, dir: dir}
	testutil.WaitFile(t, ready, r.Child)
	return r
}

// ends checks the exit code.
func (r *running) ends(code cli.ExitCode) {
	r.t.Helper()
	if got := r.Wait(); got != int(code) {
		r.t.Errorf("exit code %d, want %d\n%s", got, code, r.Stderr())
	}
}

// Standard error must contain the text.
func (r *running) says(text string) {
	r.t.Helper()
	if !strings.Contains(string(r.Stderr()), text) {
		r.t.Errorf("standard error without %q:\n%s", text, r.Stderr())
	}
}

// counts checks the summary of one process or of all. made and ended are how many blocks
// calls made and ended. A realloc does both, as one event or, if it took long or another
// thread got its old block, as two.
func (r *running) counts(of string, made, ended int) {
	r.t.Helper()
	m := regexp.MustCompile(regexp.QuoteMeta(of) + `:? (\d+) events: (\d+) allocations, (\d+) frees, (\d+) reallocations`).FindSubmatch(r.Stderr())
	if m == nil {
		r.t.Errorf("no line about %s:\n%s", of, r.Stderr())
		return
	}
	var n [4]int
	for i := range n {
		n[i], _ = strconv.Atoi(string(m[i+1]))
	}
	if n[0] != n[1]+n[2]+n[3] || n[1]+n[3] != made || n[2]+n[3] != ended {
		r.t.Errorf("%s; want %d blocks made and %d ended", m[0], made, ended)
	}
}

// trace reads the one trace in the command's directory, and fails the test unless the trace
// is whole.
func (r *running) trace() []*trace.Record {
	r.t.Helper()
	all, err := filepath.Glob(filepath.Join(r.dir, "rtrace-raw-*-0"))
	if err != nil || len(all) != 1 {
		r.t.Fatalf("traces in the directory: %v, %v", all, err)
	}
	return load(r.t, all[0])
}

func load(t *testing.T, path string) []*trace.Record {
	t.Helper()
	in, err := decoder.OpenFile(path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	records, err := trace.Load(in)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return records
}

// loadEnded reads the trace of an unfinished recording. The records in it must be whole,
// and the trace must show that its end is missing.
func loadEnded(t *testing.T, path string) []*trace.Record {
	t.Helper()
	in, err := decoder.OpenFile(path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	records, err := trace.Load(in)
	if !errors.Is(err, trace.ErrUnfinished) {
		t.Fatalf("%s: %v, want that it has no end", path, err)
	}
	return records
}

func count(records []*trace.Record, function string) int {
	n := 0
	for _, rec := range records {
		if rec.Kind == trace.KindCall && rec.Call.Function == function {
			n++
		}
	}
	return n
}

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		args []string
		code cli.ExitCode
		out  string
		err  string
	}{
		"help":              {[]string{"--help"}, cli.OK, "More: rtrace-bpf --help=all", ""},
		"all help":          {[]string{"--help=all"}, cli.OK, "Exit status:", ""},
		"short help":        {[]string{"-h"}, cli.OK, "-p, --pid", ""},
		"version":           {[]string{"--version"}, cli.OK, "rtrace-bpf ", ""},
		"no process":        {nil, cli.Usage, "", "name a process with -p PID"},
		"no number":         {[]string{"-p", "x"}, cli.Usage, "", "-p x: not a process ID; did you mean --comm x?"},
		"negative process":  {[]string{"-p", "-3"}, cli.Usage, "", "-p -3: not a process ID"},
		"no user":           {[]string{"--uid", "no such"}, cli.Usage, "", `unknown user "no such"`},
		"no name":           {[]string{"--comm", ""}, cli.Usage, "", "an empty name selects nothing"},
		"wait alone":        {[]string{"--wait"}, cli.Usage, "", "--wait goes with one --comm NAME"},
		"wait, process":     {[]string{"--wait", "--comm", "x", "-p", "1"}, cli.Usage, "", "leave -p out"},
		"wait, names":       {[]string{"--wait", "--comm", "x", "--comm", "y"}, cli.Usage, "", "--wait goes with one --comm NAME"},
		"wait, user":        {[]string{"--wait", "--comm", "x", "--uid", "0"}, cli.Usage, "", "no other description"},
		"wait, no name":     {[]string{"--wait", "--comm", ""}, cli.Usage, "", "an empty name selects nothing"},
		"wait, dotnet":      {[]string{"--wait", "--comm", "x", "--dotnet"}, cli.Usage, "", "leave --wait out"},
		"unknown flag":      {[]string{"-p", "1", "--nope"}, cli.Usage, "", "unknown flag"},
		"argument":          {[]string{"-p", "1", "x"}, cli.Usage, "", "x belongs to no flag"},
		"format":            {[]string{"-p", "1", "--format", "x"}, cli.Usage, "", "--format x: not one of sprtrace, "},
		"dialect":           {[]string{"-p", "1", "--rtrace-dialect", "x"}, cli.Usage, "", "dialect"},
		"buffer":            {[]string{"-p", "1", "--buffer", "x"}, cli.Usage, "", "--buffer x: not one of ring, perf"},
		"ring size":         {[]string{"-p", "1", "--ring-size", "3M"}, cli.Usage, "", "power of two"},
		"size":              {[]string{"-p", "1", "--min-size", "12Q"}, cli.Usage, "", "--min-size 12Q: not a size"},
		"depth":             {[]string{"-p", "1", "-b", "513"}, cli.Usage, "", "-b 513: the number is too large; write one from 0 to 512"},
		"duration":          {[]string{"-p", "1", "--duration", "-1s"}, cli.Usage, "", "negative"},
		"side":              {[]string{"-p", "1", "--side", "x"}, cli.Usage, "", "--side goes with -o -"},
		"sites":             {[]string{"-p", "1", "--sites", "x"}, cli.Usage, "", "--sites x: not one of "},
		"mtrc names":        {[]string{"-p", "1", "--mtrc-names", "x"}, cli.Usage, "", "--mtrc-names x: not one of on, off"},
		"mtrc callers":      {[]string{"-p", "1", "--mtrc-callers", "x"}, cli.Usage, "", "--mtrc-callers x: not one of program, innermost"},
		"mtrc words":        {[]string{"-p", "1", "--format", "mtrc", "--mtrc-words", "5"}, cli.Usage, "", "--mtrc-words 5: write 4 or 8"},
		"mtrc legacy words": {[]string{"-p", "1", "--format", "mtrc", "--mtrc-legacy", "--mtrc-words", "4"}, cli.Usage, "", "the legacy form is for the 64-bit mptrace"},
		"nettrace version":  {[]string{"-p", "1", "--format", "nettrace", "--nettrace-version", "5"}, cli.Usage, "", "--nettrace-version 5: write 4 or 6"},
		"nettrace view":     {[]string{"-p", "1", "--format", "nettrace", "--nettrace-view", "x"}, cli.Usage, "", "--nettrace-view x: not alloctick"},
		"max size":          {[]string{"-p", "1", "--max-size", "1M"}, cli.Usage, "", "--max-size 1M: too small; write 2M or more"},
		"max rate":          {[]string{"-p", "1", "--max-rate", "-1"}, cli.Usage, "", "--max-rate -1: not a number"},
		"max rate, strict":  {[]string{"-p", "1", "--max-rate", "1", "--strict"}, cli.Usage, "", "name one of them"},
		"system elsewhere":  {[]string{"-p", "1", "--swap-system", "100ms"}, cli.Usage, "", "--swap-system goes with --format swap"},
		"leaks elsewhere":   {[]string{"-p", "1", "--format", "jsonl", "--swap-lsan"}, cli.Usage, "", "--swap-lsan goes with --format swap"},
		"system, dotnet":    {[]string{"-p", "1", "--dotnet", "--format", "swap", "--swap-system", "100ms"}, cli.Usage, "", "not with --dotnet"},
		"system too often":  {[]string{"-p", "1", "--format", "swap", "--swap-system", "9ms"}, cli.Usage, "", "is not in 10ms to 1s"},
		"system too seldom": {[]string{"-p", "1", "--format", "swap", "--swap-system", "1001ms"}, cli.Usage, "", "is not in 10ms to 1s"},
		"leaks to stdout":   {[]string{"-p", "1", "--format", "swap", "--swap-lsan", "-o", "-"}, cli.Usage, "", "next to the trace"},
		"leaks, no live":    {[]string{"-p", "1", "--format", "swap", "--swap-lsan", "--no-live"}, cli.Usage, "", "--no-live does not track"},
		"leaks, some":       {[]string{"-p", "1", "--format", "swap", "--swap-lsan", "--min-size", "9"}, cli.Usage, "", "--min-size leaves blocks out"},
		"leaks, pauses":     {[]string{"-p", "1", "--format", "swap", "--swap-lsan", "--max-rate", "9"}, cli.Usage, "", "--max-rate loses frees"},
		"size without live": {[]string{"-p", "1", "--min-size", "1", "--no-live"}, cli.Usage, "", "live blocks"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}
			code := run(context.Background(), s, test.args, inFolder(dir))
			if code != test.code {
				t.Errorf("exit code %d, want %d\n%s", code, test.code, errOut.String())
			}
			if !strings.Contains(out.String(), test.out) || (test.out == "" && out.Len() > 0) {
				t.Errorf("standard output %q, want %q in it", out.String(), test.out)
			}
			if !strings.Contains(errOut.String(), test.err) || (test.err == "" && errOut.Len() > 0) {
				t.Errorf("standard error %q, want %q in it", errOut.String(), test.err)
			}
		})
	}
}

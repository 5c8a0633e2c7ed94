package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/pprof/profile"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// snapshots returns the snapshots of a trace by number. A number may be left out, because on a busy
// machine the snapshot before may still be being written. Nothing else in the directory is called
// like a snapshot.
func snapshots(t *testing.T, trace, suffix string) (all [][]byte) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(trace), "*snapshot*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("snapshots of %s: %v, %v", trace, found, err)
	}
	hidden, err := filepath.Glob(filepath.Join(filepath.Dir(trace), ".*snapshot*"))
	if err != nil || len(hidden) > 0 {
		t.Errorf("unfinished files: %v, %v", hidden, err)
	}
	last := 0
	for _, path := range found {
		if !strings.HasPrefix(path, trace+".") {
			continue
		}
		number, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(path, trace+".snapshot-"), suffix))
		if want := fmt.Sprintf("%s.snapshot-%04d%s", trace, number, suffix); err != nil || path != want || number <= last {
			t.Fatalf("%s after number %d, want %s", path, last, want)
		}
		last = number
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		t.Fatalf("no snapshot of %s in %v", trace, found)
	}
	return all
}

// leaked returns what rtrace leaks prints about a trace.
func leaked(t *testing.T, tool, trace string) (all topAmount) {
	t.Helper()
	out, err := exec.Command(tool, "leaks", "--json", trace).Output()
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil {
		t.Fatalf("rtrace leaks: %v\n%s", err, out)
	}
	return all
}

// snapshotted records three phases of a program, with a snapshot before the first one. It
// returns the trace, and what the program has logged.
func snapshotted(t *testing.T, format, suffix string) (trace string, report *testutil.Report) {
	t.Helper()
	child := waiting(t, "phases", "3", "50")
	r := start(t, child, "-o", "trace", "--snapshot", "100ms", "--snapshot-format", format)
	trace = filepath.Join(r.dir, "trace")
	testutil.WaitFile(t, trace+".snapshot-0001"+suffix, r.Child)
	for range 3 {
		child.Go()
		child.Ready()
	}
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	return trace, child.Report()
}

// The last snapshot has what the program has logged, and so has the trace.
func TestSnapshotJSON(t *testing.T) {
	tool := rtrace(t)
	trace, report := snapshotted(t, "json", ".json")
	allocated, freed, live := loggedAmounts(report)
	all := topLines(t, []byte(join(snapshots(t, trace, ".json"))))
	if len(all) < 2 {
		t.Errorf("%d snapshots, want two or more", len(all))
	}
	for _, m := range all[0].Resources {
		if m.Allocated.Blocks != 0 {
			t.Errorf("before the first phase: %+v", m)
		}
	}
	x := all[len(all)-1]
	if m := x.Resources[0]; len(x.Resources) != 1 || m.Type != "memory" || m.Allocated != allocated || m.Freed != freed || m.Live != live {
		t.Errorf("%+v\nwant %v allocated, %v freed, %v live", x.Resources, allocated, freed, live)
	}
	var rows topAmount
	for _, row := range x.Rows {
		rows.Blocks += row.Live.Blocks
		rows.Bytes += row.Live.Bytes
		if len(row.Stack) == 0 || !strings.HasPrefix(row.Function, "do_malloc") && row.Function != "main" {
			t.Errorf("a row of %q, called by %q", row.Function, row.Stack)
		}
	}
	if rows != live || x.OtherRows != 0 {
		t.Errorf("rows have %v live, want %v", rows, live)
	}
	if got := leaked(t, tool, trace); got != live {
		t.Errorf("rtrace leaks has %v, want %v", got, live)
	}
	if p := x.Processes; len(p) != 1 || p[0].Name != "phases" || !p[0].Ended || x.Lost != 0 {
		t.Errorf("%+v, %d lost", p, x.Lost)
	}
}

func join(all [][]byte) string {
	var text strings.Builder
	for _, x := range all {
		text.Write(x)
	}
	return text.String()
}

// Each profile is whole, and the last one has the figures of a profile of the trace.
func TestSnapshotProfile(t *testing.T) {
	tool := rtrace(t)
	trace, report := snapshotted(t, "pprof", ".pb.gz")
	all := snapshots(t, trace, ".pb.gz")
	sum := func(text []byte) (p *profile.Profile, sums [4]int64) {
		p, err := profile.ParseData(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Sample {
			for i, v := range s.Value {
				sums[i] += v
			}
		}
		return p, sums
	}
	for _, text := range all {
		sum(text)
	}
	p, got := sum(all[len(all)-1])
	allocated, _, live := loggedAmounts(report)
	want := [4]int64{int64(allocated.Blocks), int64(allocated.Bytes), int64(live.Blocks), int64(live.Bytes)}
	if got != want {
		t.Errorf("%v, want %v", got, want)
	}
	out, err := exec.Command(tool, "convert", "-f", "pprof", trace).Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, converted := sum(out); converted != got {
		t.Errorf("rtrace convert has %v, want %v", converted, got)
	}
	if len(p.Comments) != 1 || !strings.HasPrefix(p.Comments[0], fmt.Sprintf("snapshot %d of process ", len(all))) || !strings.HasSuffix(p.Comments[0], ", the last one") {
		t.Errorf("comments %q", p.Comments)
	}
	if p.TimeNanos <= 0 || p.DurationNanos <= 0 {
		t.Errorf("begins at %d, takes %d", p.TimeNanos, p.DurationNanos)
	}
}

// Folded stacks have the live bytes.
func TestSnapshotFolded(t *testing.T) {
	trace, report := snapshotted(t, "folded", ".folded")
	all := snapshots(t, trace, ".folded")
	var got uint64
	for line := range strings.Lines(string(all[len(all)-1])) {
		stack, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || !strings.Contains(stack, "main;") {
			t.Errorf("%q: %v", line, err)
		}
		got += n
	}
	if _, _, live := loggedAmounts(report); got != live.Bytes || len(all[0]) != 0 {
		t.Errorf("%d live, want %d; the first has %q", got, live.Bytes, all[0])
	}
}

// Each process has its own snapshots, also if its trace is written at the end.
func TestSnapshotsOfSeveral(t *testing.T) {
	a, b := waiting(t, "phases", "1", "20"), waiting(t, "phases", "2", "30")
	r := startOn(t, "-p", list(a, b), "--snapshot", "1h", "--snapshot-format", "json", "--format", "mtrc")
	a.Go()
	a.Go()
	a.Succeed()
	for range 3 {
		b.Go()
	}
	b.Succeed()
	r.ends(cli.OK)
	for _, child := range []*testutil.Child{a, b} {
		trace := filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.mtrc", child.PID))
		all := topLines(t, []byte(join(snapshots(t, trace, ".json"))))
		_, _, live := loggedAmounts(child.Report())
		if len(all) != 1 || all[0].Resources[0].Live != live || len(all[0].Processes) != 1 || all[0].Processes[0].PID != child.PID {
			t.Errorf("%+v, want %v live", all, live)
		}
	}
}

// A command has snapshots from its first call.
func TestSnapshotsOfCommand(t *testing.T) {
	tool := rtrace(t)
	l := launchCommand(t, []string{"--snapshot", "1h", "--snapshot-format=json"}, testutil.Build(t, "phases"), "1", "20")
	l.Ready()
	l.Go()
	l.Ready()
	l.Go()
	l.ends(0)
	all := topLines(t, []byte(join(snapshots(t, l.trace(), ".json"))))
	if got := leaked(t, tool, l.trace()); len(all) != 1 || all[0].Resources[0].Live != got || got.Blocks == 0 {
		t.Errorf("%+v, want %v", all, got)
	}
}

// Lost events are in the last snapshot.
func TestSnapshotLoses(t *testing.T) {
	child := waiting(t, "loop", "1", "200000")
	r := start(t, child, "-o", "trace", "--ring-size", "64k", "--snapshot", "1h")
	r.Signal(syscall.SIGSTOP)
	child.Go()
	child.Succeed()
	r.Signal(syscall.SIGCONT)
	r.ends(cli.Incomplete)
	p, err := profile.ParseData(snapshots(t, filepath.Join(r.dir, "trace"), ".pb.gz")[0])
	if err != nil || !strings.Contains(strings.Join(p.Comments, "\n"), "\nlost: ") {
		t.Errorf("comments %q, %v", p.Comments, err)
	}
}

// A snapshot that cannot be written is reported once, and the trace is whole.
func TestSnapshotFails(t *testing.T) {
	child := waiting(t, "phases", "1", "20")
	r := start(t, child, "-o", "trace", "--snapshot", "1h")
	taken := filepath.Join(r.dir, "trace.snapshot-0001.pb.gz")
	if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	child.Go()
	child.Ready()
	child.Go()
	child.Succeed()
	r.ends(cli.Incomplete)
	r.says("snapshot trace.snapshot-0001.pb.gz: the file exists")
	r.says(fmt.Sprintf("1 of 1 snapshots of process %d are missing", child.PID))
	if n := count(load(t, filepath.Join(r.dir, "trace")), "malloc"); n != 20 {
		t.Errorf("%d calls in the trace, want 20", n)
	}
	if text, err := os.ReadFile(taken); string(text) != "mine" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// If the first file exists, or there is no place for the files, nothing is traced.
func TestSnapshotsThatCannotBe(t *testing.T) {
	child := waiting(t, "phases", "1", "20")
	dir := t.TempDir()
	path := filepath.Join(dir, "trace")
	if err := os.WriteFile(path+".snapshot-0001.folded", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		code cli.ExitCode
		want string
	}{
		{[]string{"-o", path, "--snapshot-format", "folded"}, cli.Failed, "snapshot-0001.folded: the file exists; remove it, or name another output"},
		{[]string{"-o", "/dev/null"}, cli.Usage, "--snapshot writes files to the directory of the trace, and /dev/null is not a regular file"},
	} {
		got := finish(t, command(t, append([]string{"-p", fmt.Sprint(child.PID), "--snapshot", "1h"}, test.args...)...))
		if got.code != int(test.code) || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%v: exit code %d\n%s", test.args, got.code, got.stderr)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the trace was left")
	}
}

func TestSnapshotFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--snapshot 30":                                  "--snapshot 30: a time needs a unit; did you mean --snapshot 30s?",
		"--snapshot 10ms":                                "--snapshot: the time is too short; write 100ms or more",
		"--snapshot 30s --snapshot-format xml":           "--snapshot-format xml: not one of pprof, folded, json",
		"--snapshot-format json":                         "--snapshot-format goes with --snapshot TIME",
		"--snapshot 30s -o -":                            "--snapshot writes files to the directory of the trace, and -o - has none",
		"--snapshot 30s --dotnet":                        "--snapshot does not go with --dotnet alone",
		"--snapshot 30s --snapshot-format=pprof":         "",
		"--snapshot 1m30s --snapshot-format json -q":     "",
		"--snapshot 30s --duration 1m --format nettrace": "",
	} {
		var c config
		err := c.parse(strings.Fields("-p 1 "+args), settings{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

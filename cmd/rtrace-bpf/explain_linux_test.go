package main

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/testutil"
)

// residence starts the program whose memory is of one kind, and waits until it changes no more.
func residence(t *testing.T, args ...string) *testutil.Child {
	t.Helper()
	child := testutil.Spawn(t, testutil.Build(t, "residence", "-pthread"), args...)
	child.Ready()
	return child
}

// explained returns the documents that the command prints with --json.
func explained(t *testing.T, want cli.ExitCode, args ...string) (all []explain.Document) {
	t.Helper()
	out, errOut, code := ran(t, append([]string{"explain", "--json"}, args...)...)
	if code != want {
		t.Fatalf("exit code %d, want %d\n%s", code, want, errOut)
	}
	for line := range strings.Lines(out) {
		var d explain.Document
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if !d.AddsUp() {
			t.Errorf("the rows of process %d have %d bytes, and the process %d", d.Process.PID, d.Sum, d.Resident)
		}
		all = append(all, d)
	}
	return all
}

func TestExplainSeveral(t *testing.T) {
	one, two := residence(t, "shared", "16"), residence(t, "leak", "8")
	pids := fmt.Sprintf("%d,%d", one.PID, two.PID)
	all := explained(t, cli.OK, "-p", pids)
	if len(all) != 2 || all[0].Process.PID != one.PID || all[1].Process.PID != two.PID {
		t.Fatalf("%d documents", len(all))
	}
	if all[0].Verdicts[0].Topic != explain.AboutShared || all[1].Verdicts[0].Topic != explain.AboutLive {
		t.Errorf("the verdicts are %+v and %+v", all[0].Verdicts, all[1].Verdicts)
	}
	const little = 1 << 20 // the kernel may take a page of a file, or make pages huge
	if d := all[0].Drift; d == nil || d.Resident > little || d.Resident < -little {
		t.Errorf("the drift of a process that waits is %+v", d)
	}
	out, errOut, code := ran(t, "explain", "-p", pids+",2147483647")
	if code != cli.Incomplete || strings.Count(out, "the kernel counts") != 2 || !strings.Contains(errOut, "1 of 3 processes") {
		t.Errorf("with a process that does not exist: exit code %d\n%s%s", code, out, errOut)
	}
	for line := range strings.Lines(out) {
		if n := len([]rune(line)); n > cli.ScreenWidth+20 { // names of files are not cut
			t.Errorf("%q has %d columns", line, n)
		}
	}
}

// A process that is traced by nobody has no probes, and is not stopped: explain leaves its code
// as it is.
func TestExplainTouchesNothing(t *testing.T) {
	child := residence(t, "leak", "1")
	explained(t, cli.OK, "-p", fmt.Sprint(child.PID))
	testutil.CodeOf(t, child.PID).Original(t)
	child.Go()
	child.Succeed()
}

// --watch reads again and again, and each reading but the first has the drift.
func TestExplainWatch(t *testing.T) {
	child := residence(t, "heap", "2")
	all := explained(t, cli.OK, "-p", fmt.Sprint(child.PID), "--watch=10ms", "--count", "3")
	if len(all) != 3 || all[0].Drift != nil || all[1].Drift == nil || all[2].Drift == nil {
		t.Fatalf("%d readings: %+v", len(all), all)
	}
	if !all[1].Time.After(all[0].Time) {
		t.Errorf("readings at %v and %v", all[0].Time, all[1].Time)
	}
	child.Go()
	child.Succeed()
	// One that has ended is an error at first, and no error later.
	if _, errOut, code := ran(t, "explain", "--watch", "-p", fmt.Sprint(child.PID)); code != cli.Failed || !strings.Contains(errOut, "no such process") {
		t.Errorf("exit code %d\n%s", code, errOut)
	}
}

// Without time, the blocks of malloc are not read, which is the verdict.
func TestExplainWithoutWalk(t *testing.T) {
	child := residence(t, "leak", "64")
	d := explained(t, cli.OK, "-p", fmt.Sprint(child.PID), "--max-walk", "0s")[0]
	if v := d.Verdicts[0]; v.Topic != explain.AboutUnknown || !strings.Contains(v.Text, "time") {
		t.Errorf("the verdict is %+v", v)
	}
	child.Go()
	child.Succeed()
}

func TestExplainWatchEnds(t *testing.T) {
	child := residence(t, "leak", "1")
	cmd := command(t, "explain", "--watch=1ms", "--json", "-p", fmt.Sprint(child.PID))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(out)
	var first explain.Document
	if err := d.Decode(&first); err != nil {
		t.Fatal(err)
	}
	child.Go()
	child.Succeed()
	for err = nil; err == nil; err = d.Decode(&first) { // until it ends
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("when the process ended: %v", err)
	}
}

func TestExplainWrong(t *testing.T) {
	for _, test := range []struct {
		args string
		code cli.ExitCode
		text string
	}{
		{"", cli.Usage, "name a process with -p PID or --comm NAME"},
		{"4711", cli.Usage, "name processes with -p PID"},
		{"-p x", cli.Usage, "not a process ID"},
		{"-p 1 --count 3", cli.Usage, "--count counts the readings of --watch"},
		{"-p 1 --watch=soon", cli.Usage, "--watch"},
		{"-p 2", cli.Failed, "process 2"},
		{"-p 2147483647", cli.Failed, "rtrace-bpf explain: process 2147483647: no such process"},
		{"--comm no/such", cli.Failed, "no process"},
	} {
		out, errOut, code := ran(t, append([]string{"explain"}, strings.Fields(test.args)...)...)
		if code != test.code || !strings.Contains(errOut, test.text) || out != "" {
			t.Errorf("explain %s: exit code %d, want %d with %q\n%s%s", test.args, code, test.code, test.text, out, errOut)
		}
	}
}

// Names of the target reach the terminal only in a printable form.
func TestExplainHostileNames(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "a\x1b[31mb\u202e")
	testutil.CopyFile(t, testutil.Build(t, "residence", "-pthread"), program)
	data := filepath.Join(dir, "data\x1b]0;title\a\u202e\n")
	if err := os.WriteFile(data, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	child := testutil.Spawn(t, program, "file", data)
	child.Ready()
	watch := []string{"--watch=1ms", "--count=2"}
	for _, flags := range [][]string{{}, {"--all"}, {"--json"}, watch, append(watch, "--json"), append(watch, "--all")} {
		out, errOut, code := ran(t, append([]string{"explain", "-p", fmt.Sprint(child.PID)}, flags...)...)
		if code != cli.OK || !strings.Contains(out, "title") {
			t.Fatalf("exit code %d\n%s%s", code, out, errOut)
		}
		if strings.ContainsAny(out+errOut, "\x1b\a\u202e") {
			t.Errorf("%v: control characters reach the terminal: %q", flags, out)
		}
	}
	_, errOut, code := ran(t, "explain", "--comm", "x\x1b[31m\u202e")
	if code != cli.Failed || strings.ContainsAny(errOut, "\x1b\u202e") || !strings.Contains(errOut, `x\x1b[31m\u202e`) {
		t.Errorf("exit code %d: %q", code, errOut)
	}
}

// All processes of a name are explained, parents and children alike.
func TestExplainComm(t *testing.T) {
	const comm = "rtrace-explain"
	program := filepath.Join(t.TempDir(), comm)
	testutil.CopyFile(t, testutil.Build(t, "residence", "-pthread"), program)
	one, two := testutil.Spawn(t, program, "shared", "16"), testutil.Spawn(t, program, "fork", "8")
	one.Ready()
	two.Ready()
	topics := map[int]explain.Topic{}
	out, err := command(t, "explain", "--json", "--comm", comm).Output() // not by this process, which is their parent
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		var d explain.Document
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		topics[d.Process.PID] = d.Verdicts[0].Topic
	}
	child, err := strconv.Atoi(childrenOf(t, two.PID))
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]explain.Topic{one.PID: explain.AboutShared, two.PID: explain.AboutLive, child: explain.AboutLive}
	if !maps.Equal(topics, want) {
		t.Errorf("the verdicts are %v, want %v", topics, want)
	}
	two.Go()
	two.Succeed()
}

// childrenOf returns the IDs of the children of a process's main thread, with spaces between them.
func childrenOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// containerRoot returns a folder with a program and the libraries that it loads when it is started
// with args.
func containerRoot(t *testing.T, program string, args ...string) string {
	t.Helper()
	root := t.TempDir()
	put := func(from, to string) {
		to = filepath.Join(root, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		testutil.CopyFile(t, from, to)
	}
	put(program, "program")
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name, err := io.ReadAll(p.Open())
			if err != nil {
				t.Fatal(err)
			}
			loader := strings.TrimSuffix(string(name), "\x00")
			put(loader, loader)
		}
	}
	child := testutil.Spawn(t, program, args...)
	child.Ready()
	loaded, err := proc.Maps(child.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range loaded {
		if m.File() && m.Perms&proc.Exec != 0 && m.Path != program {
			put(m.Path, m.Path)
		}
	}
	return root
}

// A process in a container of its own, with another root and other users, is explained from
// outside: its files are found in its own root, and tmpfs is known from its own mounts.
func TestExplainContainer(t *testing.T) {
	program := testutil.Build(t, "residence", "-pthread")
	root := containerRoot(t, program, "leak", "1")
	if err := os.WriteFile(filepath.Join(root, "file"), make([]byte, 16<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	const script = `set -e
mount --bind "$1" "$1"
cd "$1"
mkdir -p old tmp
mount -t tmpfs none tmp
cp file tmp/file
pivot_root . old
shift
exec "$@"`
	for _, test := range []struct {
		args  []string
		topic explain.Topic
		words string
	}{
		{[]string{"leak", "8"}, explain.AboutLive, "live blocks of malloc"},
		{[]string{"file", "/tmp/file"}, explain.AboutShared, "/tmp/file"},
	} {
		cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", root, "/program")
		cmd.Args = append(cmd.Args, test.args...)
		outer := testutil.Start(t, cmd)
		outer.Ready()
		d := explained(t, cli.OK, "-p", childrenOf(t, outer.PID))[0]
		if v := d.Verdicts[0]; v.Topic != test.topic || !strings.Contains(v.Text, test.words) {
			t.Errorf("the verdict is %+v", v)
		}
		if p := d.Process; p.Exe != "/program" || p.NSPID != 1 || d.Heap == nil || len(d.Heap.Arenas) != 1 {
			t.Errorf("%+v with the heap %+v", p, d.Heap)
		}
		outer.Go()
		outer.Succeed()
	}
}

// In a PID namespace, the process has another ID. It is explained from outside and from inside.
func TestExplainInNamespace(t *testing.T) {
	program := testutil.Build(t, "residence", "-pthread")
	outer := testutil.Start(t, exec.Command("unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", program, "shared", "16"))
	outer.Ready()
	pid := childrenOf(t, outer.PID)
	fromOutside := explained(t, cli.OK, "-p", pid)[0]

	inside := command(t, "explain", "--json", "-p", "1")
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		t.Fatal(err)
	}
	inside.Path, inside.Args = nsenter, append([]string{"nsenter", "-t", pid, "--pid", "--mount"}, inside.Args...)
	out, err := inside.Output()
	if err != nil {
		t.Fatal(err)
	}
	var fromInside explain.Document
	if err := json.Unmarshal(out, &fromInside); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(fromOutside.Process.PID) != pid || fromInside.Process.PID != 1 {
		t.Errorf("the process has the IDs %d and %d, want %s and 1", fromOutside.Process.PID, fromInside.Process.PID, pid)
	}
	for _, d := range []explain.Document{fromOutside, fromInside} {
		if d.Process.NSPID != 1 || d.Verdicts[0].Topic != explain.AboutShared || d.Process.Exe != program {
			t.Errorf("%+v: %+v", d.Process, d.Verdicts)
		}
	}
	outer.Go()
	outer.Succeed()
}

// The mappings of a 32-bit process add up; its blocks are not read.
func TestExplain32Bit(t *testing.T) {
	testutil.Need32Bit(t)
	child := testutil.Spawn(t, testutil.Build32(t, "residence", "-pthread"), "shared", "16")
	child.Ready()
	all := explained(t, cli.OK, "-p", fmt.Sprint(child.PID))
	d := all[0]
	if d.Process.Bits != 32 || d.Heap != nil || len(d.Notes) != 1 || d.Verdicts[0].Topic != explain.AboutShared {
		t.Errorf("%+v: %+v %q", d.Process, d.Verdicts, d.Notes)
	}
}

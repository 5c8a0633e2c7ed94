package tracer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// tally counts the stacks of a program that was not written for these tests. It does not
// keep the records, because there are many.
type tally struct {
	calls, complete, framePointer int
	bounded, cut                  int            // the largest number of frames in a stack without bpf_loop, and how many stacks have that many
	others                        map[string]int // number of stacks that are not complete, by end and reason
}

func (c *tally) add(s *trace.Stack) {
	switch {
	case s.End == trace.StackAbsent:
		return
	case s.End == trace.StackTruncated && c.bounded > 0 && len(s.Frames) >= c.bounded:
		c.cut++
	case s.End == trace.StackComplete && s.FramePointer:
		c.framePointer++
	case s.End == trace.StackComplete:
		c.complete++
	default:
		c.others[fmt.Sprintf("%s %s", s.End, s.Reason)]++
	}
	c.calls++
}

// tallied traces child while it works, until its end.
func tallied(t *testing.T, way plan.Unwind, child *testutil.Child, work func()) *tally {
	t.Helper()
	p, err := plan.New(plan.Options{PID: child.PID, Unwind: way, Depth: plan.MaxDepth, BacktraceAll: true})
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	tracer, err := Open(p)
	if err != nil {
		t.Fatalf("attach: %+v", err)
	}
	c := &tally{others: map[string]int{}}
	if p.Mechanisms.Bounded {
		c.bounded = plan.MaxBounded
	}
	done := make(chan error, 1)
	go func() { done <- c.read(tracer) }()
	work()
	child.Succeed()
	if err := <-done; err != nil {
		t.Errorf("read: %v", err)
	}
	if err := tracer.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if s := tracer.Stats(); s.Losses() > 0 {
		t.Logf("%d losses", s.Losses())
	}
	return c
}

func (c *tally) read(tracer *Tracer) error {
	var rec trace.Record
	for {
		switch err := tracer.ReadRecord(&rec); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if rec.Kind == trace.KindCall {
			c.add(&rec.Call.Stack)
		}
	}
}

// atLeast requires a share of complete stacks, with or without those found with frame
// pointers.
func (c *tally) atLeast(t *testing.T, calls int, share float64, framePointers bool) {
	t.Helper()
	complete := c.complete + c.cut
	if framePointers {
		complete += c.framePointer
	}
	if got := float64(complete) / float64(max(c.calls, 1)); got < share {
		t.Errorf("%.3f %% of the stacks are complete, want %.1f %%", 100*got, 100*share)
	}
	if c.calls < calls {
		t.Errorf("%d stacks, want at least %d", c.calls, calls)
	}
	t.Logf("%d stacks: %d complete by tables alone, %d with frame pointers, %d cut at the bound", c.calls, c.complete, c.framePointer, c.cut)
	for _, what := range slices.Sorted(maps.Keys(c.others)) {
		t.Logf("%8d %s", c.others[what], what)
	}
}

// installed is testutil.Installed, except that a benchmark is skipped if the program is
// missing.
func installed(t testing.TB, name string) string {
	t.Helper()
	if b, ok := t.(*testing.B); ok {
		if _, err := exec.LookPath(name); err != nil {
			skipped(b, name+" is not installed")
		}
	}
	return testutil.Installed(t, name)
}

// skipped skips a benchmark and prints why, which benchmarks do not do without -v.
func skipped(b *testing.B, why string) {
	b.Helper()
	if !testing.Verbose() {
		fmt.Fprintf(os.Stderr, "SKIPPED: %s: %s\n", b.Name(), why)
	}
	b.Skip("SKIPPED: " + why)
}

// fed starts a program that reads commands, and waits until it answers.
func fed(t testing.TB, cmd *exec.Cmd, question, answer string) (child *testutil.Child, feed io.WriteCloser) {
	t.Helper()
	input, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answers.Close() })
	cmd.Stdin, cmd.Stdout = input, output
	child = testutil.Start(t, cmd)
	input.Close()
	output.Close()
	if _, err := io.WriteString(feed, question+"\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(answers)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%s gave no answer: %v", cmd.Path, err)
		}
		if strings.Contains(line, answer) {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // returns when the program ends
	return child, feed
}

// finishWith gives a program that reads commands its last ones.
func finishWith(t testing.TB, feed io.WriteCloser, text string) {
	t.Helper()
	if _, err := io.WriteString(feed, text); err != nil {
		t.Fatal(err)
	}
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
}

// preprocessed returns a C++ file after preprocessing.
func preprocessed(t testing.TB, path string) string {
	t.Helper()
	text, err := exec.Command(installed(t, "g++"), "-std=gnu++17", "-E", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// compiler returns the command of g++'s compiler proper, with more flags. It will read a
// FIFO.
func compiler(t testing.TB, flags ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.Command(installed(t, "g++"), "-print-prog-name=cc1plus").Output()
	if err != nil {
		t.Fatal(err)
	}
	args := append(flags, "-fpreprocessed", "-quiet", "-std=gnu++17", "-o", filepath.Join(t.TempDir(), "output.s"), fifo(t))
	return exec.Command(strings.TrimSpace(string(path)), args...)
}

// fifo makes a FIFO and returns its path.
func fifo(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source.ii")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// compiling starts a compiler and waits until it opens the FIFO, its last argument.
func compiling(t testing.TB, cmd *exec.Cmd) (child *testutil.Child, feed io.WriteCloser) {
	t.Helper()
	child = testutil.Start(t, cmd)
	feed, err := os.OpenFile(cmd.Args[len(cmd.Args)-1], os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return child, feed
}

// Programs of the distribution, which have no frame pointers: unwind tables alone lead to
// the end of practically every stack.
func TestStacksOfRealPrograms(t *testing.T) {
	testutil.NeedBPF(t)
	const enough = 0.999
	t.Run("python3", func(t *testing.T) {
		const script = `import os, json, sqlite3, re, threading
os.write(3, b"ready\n"); os.read(4, 1)
def work():
    db = sqlite3.connect(":memory:")
    db.execute("create table t(a, b)")
    db.executemany("insert into t values(?, ?)", ((i, "x" * i) for i in range(400)))
    rows = json.loads(json.dumps(db.execute("select * from t order by b").fetchall()))
    rows.sort(key=lambda r: len(re.sub("x+", "y", r[1])) + r[0])
threads = [threading.Thread(target=work) for i in range(3)]
[x.start() for x in threads]; work(); [x.join() for x in threads]`
		cmd := exec.Command(installed(t, "/usr/bin/python3"), "-c", script)
		cmd.Env = append(os.Environ(), "PYTHONMALLOC=malloc")
		child := testutil.Start(t, cmd)
		child.Ready()
		tallied(t, plan.UnwindEH, child, child.Go).atLeast(t, 20000, enough, false)
	})
	t.Run("sqlite3", func(t *testing.T) {
		child, feed := fed(t, exec.Command(installed(t, "sqlite3"), ":memory:"), "select 'up';", "up")
		tallied(t, plan.UnwindEH, child, func() {
			finishWith(t, feed, "create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n where i<20000)"+
				" insert into t select i,'text '||i from n; create index ti on t(b);"+
				" select a, group_concat(b) from t where b like '%7%' group by a % 100 order by b; select json_group_array(b) from t;\n")
		}).atLeast(t, 1000, enough, false)
	})
	t.Run("gdb", func(t *testing.T) {
		program := testutil.Build(t, "stacks_cxx")
		child, feed := fed(t, exec.Command(installed(t, "gdb"), "-nx", "-q"), "echo up\\n", "up")
		tallied(t, plan.UnwindEH, child, func() {
			finishWith(t, feed, "set pagination off\nfile "+program+"\ninfo types Shape\nptype Square\nlist main\n"+
				"info scope fall\nbreak exceptions\ndisassemble main\ninfo functions comparators\nquit\n")
		}).atLeast(t, 20000, enough, false)
	})
	t.Run("cc1plus", func(t *testing.T) {
		text := preprocessed(t, testutil.Source(t, "stacks_cxx"))
		how, calls := "-O1", 50000
		if !testutil.Sweep(t) {
			how, calls = "-fsyntax-only", 10000
		}
		child, feed := compiling(t, compiler(t, how))
		tallied(t, plan.UnwindEH, child, func() { finishWith(t, feed, text) }).atLeast(t, calls, enough, false)
	})
}

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// TestRealPrograms traces other people's programs from a moment when they wait for input
// until they end: no event is lost and no two live blocks have the same address. Their work
// fits into the rings, so a busy machine does not matter.
func TestRealPrograms(t *testing.T) {
	testutil.NeedBPF(t)
	t.Run("sqlite3", func(t *testing.T) {
		input, feed := pipe(t)
		answers, output := pipe(t)
		cmd := exec.Command("sqlite3", ":memory:")
		cmd.Stdin, cmd.Stdout = input, output
		child := testutil.Start(t, cmd)
		input.Close()
		output.Close()
		answer := bufio.NewReader(answers)
		if _, err := io.WriteString(feed, "select 'up';\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := answer.ReadString('\n'); err != nil || line != "up\n" {
			t.Fatalf("sqlite3 prints %q, %v", line, err)
		}
		realProgram(t, child, 500, func() {
			write(t, feed, "create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n where i<2000)"+
				" insert into t select i,'text '||i from n; create index ti on t(b);"+
				" select count(*), max(b) from t where b like '%7%';\n")
		})
		if line, err := answer.ReadString('\n'); err != nil || line != "542|text 997\n" {
			t.Errorf("sqlite3 prints %q, %v", line, err)
		}
	})
	t.Run("python3", func(t *testing.T) {
		const script = `import os, json, sqlite3
os.write(3, b"ready\n"); os.read(4, 1)
db = sqlite3.connect(":memory:")
db.execute("create table t(a, b)")
db.executemany("insert into t values(?, ?)", ((i, "x" * i) for i in range(300)))
print(len(json.dumps(db.execute("select * from t").fetchall())))`
		child := testutil.Start(t, exec.Command("/usr/bin/python3", "-c", script))
		child.Ready()
		realProgram(t, child, 1000, child.Go)
		if out := string(child.Output()); out != "48040\n" {
			t.Errorf("python3 prints %q", out)
		}
	})
	t.Run("cc1plus", func(t *testing.T) {
		path, err := exec.Command("g++", "-print-prog-name=cc1plus").Output()
		if err != nil {
			t.Fatal(err)
		}
		source := filepath.Join(t.TempDir(), "source.ii")
		if err := unix.Mkfifo(source, 0o600); err != nil {
			t.Fatal(err)
		}
		output := filepath.Join(t.TempDir(), "output.s")
		child := testutil.Start(t, exec.Command(strings.TrimSpace(string(path)), "-fpreprocessed", "-quiet", "-O2", source, "-o", output))
		// Opening for writing waits until the compiler has opened the file, too.
		feed, err := os.OpenFile(source, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		realProgram(t, child, 1000, func() {
			write(t, feed, "template<class T> struct list { T value; list *next; };\n"+
				"template<class T> int length(list<T> *l) { int n = 0; for (; l; l = l->next) n++; return n; }\n"+
				"int main() { list<int> a{1, nullptr}, b{2, &a}; list<char> c{'x', nullptr}; return length(&b) + length(&c); }\n")
		})
		if out, err := os.ReadFile(output); err != nil || !strings.Contains(string(out), "main") {
			t.Errorf("no assembly in the output: %v", err)
		}
	})
}

// realProgram traces child from now on, lets it work, and checks the trace.
func realProgram(t *testing.T, child *testutil.Child, atLeast int, work func()) {
	t.Helper()
	r := start(t, child)
	work()
	child.Succeed()
	r.ends(cli.OK)
	r.says("lost: 0")
	live := map[uint64]bool{}
	calls := 0
	for _, rec := range r.trace() {
		if rec.Kind != trace.KindCall {
			continue
		}
		calls++
		if rec.Call.Op == trace.OpFree {
			delete(live, rec.Call.ID)
			continue
		}
		if live[rec.Call.ID] {
			t.Fatalf("call %d, %s: %#x was live", rec.Call.Seq, rec.Call.Function, rec.Call.ID)
		}
		live[rec.Call.ID] = true
	}
	if calls < atLeast {
		t.Errorf("%d calls in the trace, want at least %d", calls, atLeast)
	}
}

func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return read, write
}

// write sends text to a program and ends its input.
func write(t *testing.T, to *os.File, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
}

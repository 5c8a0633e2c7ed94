package main

import (
	"bufio"
	"io"
	"os/exec"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// service is a real program that does some work for each line that it reads, and then prints one.
type service struct {
	*testutil.Child
	t    testing.TB
	in   io.Writer
	out  *bufio.Reader
	line string // what it reads
}

// startService starts a service, and has it do some work before anybody watches it.
func startService(t testing.TB, line, program string, args ...string) *service {
	t.Helper()
	cmd := exec.Command(testutil.Installed(t, program), args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &service{Child: testutil.Start(t, cmd), t: t, in: in, out: bufio.NewReader(out), line: line}
	s.work(20)
	return s
}

// work has the service do its work some times.
func (s *service) work(times int) {
	s.t.Helper()
	for range times {
		if _, err := io.WriteString(s.in, s.line+"\n"); err != nil {
			s.t.Fatal(err)
		}
		if _, err := s.out.ReadString('\n'); err != nil {
			s.t.Fatal(err)
		}
	}
}

// leaks has the service work until the first suspect has a function in its stack.
func (s *service) leaks(function string) {
	s.t.Helper()
	watchProgram(s.t, s.PID).leaks(function, func() { s.work(3) })
}

// isSteady has the service work long enough to replace all that it keeps several times. No call
// site may be a suspect then.
func (s *service) isSteady() {
	s.t.Helper()
	w, rounds := watchProgram(s.t, s.PID), 0
	last := topUntil(s.t, w.tables, func(*suspectLine) bool {
		s.work(3)
		rounds++
		return rounds == 40
	})
	if len(last.Suspects) > 0 {
		s.t.Errorf("suspects %+v", last.Suspects)
	}
}

// Scripts that work for each line that they read.
const (
	pythonLeak = `import ctypes, sys
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
for line in sys.stdin:
    for i in range(30):
        p = libc.malloc(3000)
        if i % 3: libc.free(p)
    print(flush=True)`
	pythonCache = `import collections, sys
kept = collections.deque(maxlen=100)
for line in sys.stdin:
    for i in range(30): kept.append("x" * (1000 + i))
    print(flush=True)`
	// Without the collections, node frees replaced buffers when they have tens of MiB, which takes
	// longer than the test.
	nodeCache = `const kept = [];
let lines = 0;
require('readline').createInterface({ input: process.stdin }).on('line', () => {
  for (let i = 0; i < 10; i++) { kept.push(Buffer.alloc(20000)); if (kept.length > 50) kept.shift(); }
  if (++lines % 10 === 0) gc();
  console.log();
});`
	javaLeak = `import java.io.*;
import java.nio.ByteBuffer;
import java.util.*;

public class Leak {
	static List<ByteBuffer> kept = new ArrayList<>();

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		while (in.readLine() != null) {
			for (int i = 0; i < 10; i++) kept.add(ByteBuffer.allocateDirect(20000));
			System.out.println();
		}
	}
}
`
	sqliteTable = `create table t(id integer primary key, x); insert into t(x) with n(i) as (values(1) union all select i+1 from n where i<200) select randomblob(500) from n; select 1;`
	sqliteLeak  = `insert into t(x) values(randomblob(500)), (randomblob(500)), (randomblob(500)); select 1;`
	sqliteCache = `insert into t(x) select randomblob(500) from t limit 20; delete from t where id <= (select max(id) from t) - 200; select 1;`
)

// Services in the languages of docs/answers.md: what a leak adds is a suspect, and what is replaced
// is none.
func TestSuspectsOfServices(t *testing.T) {
	testutil.Extra(t, "python3, sqlite3, node and java, and half a minute")
	testutil.NeedBPF(t)
	t.Run("python3 with a leak in C", func(t *testing.T) {
		t.Parallel() // they wait most of the time
		startService(t, "", "python3", "-c", pythonLeak).leaks("libffi.so")
	})
	t.Run("python3 with a cache", func(t *testing.T) {
		t.Parallel()
		startService(t, "", "python3", "-c", pythonCache).isSteady()
	})
	t.Run("sqlite3 with a table that grows", func(t *testing.T) {
		t.Parallel()
		s := startService(t, "select 1;", "sqlite3", ":memory:")
		s.line = sqliteTable
		s.work(1)
		s.line = sqliteLeak
		s.leaks("libsqlite3.so")
	})
	t.Run("sqlite3 with a table whose rows are replaced", func(t *testing.T) {
		t.Parallel()
		s := startService(t, "select 1;", "sqlite3", ":memory:")
		s.line = sqliteTable
		s.work(1)
		s.line = sqliteCache
		s.work(50)
		s.isSteady()
	})
	t.Run("node with buffers that are replaced", func(t *testing.T) {
		t.Parallel()
		startService(t, "", "node", "--expose-gc", "-e", nodeCache).isSteady()
	})
	t.Run("java with direct buffers that stay", func(t *testing.T) {
		t.Parallel()
		dir, path := sourceIn(t, "Leak.java", javaLeak)
		compile(t, "javac", "-d", dir, path)
		startService(t, "", "java", "-Xmx64m", "-XX:MaxDirectMemorySize=1g", "-cp", dir, "Leak").leaks("Unsafe_AllocateMemory0")
	})
}

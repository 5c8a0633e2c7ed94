package tracer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/record"
)

// workload is the work of a program that was not written for these benchmarks: some
// hundred thousand allocations, which take a few tenths of a second at most without
// tracing.
type workload struct {
	name string
	// start starts the program and waits until it is ready; work lets it continue.
	start func(b *testing.B) (cmd *exec.Cmd, child *testutil.Child, work func())
}

// cost runs the workload while attach is in effect and returns the CPU time that the
// program spent on it, from the gate to its end.
func (w *workload) cost(b *testing.B, attach func(pid int) (detach func())) float64 {
	b.Helper()
	cmd, child, work := w.start(b)
	detach := attach(child.PID)
	before := used(b, child.PID)
	work()
	child.Succeed()
	detach()
	return float64(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() - before)
}

// used returns the CPU time that a process has used so far.
func used(b *testing.B, pid int) time.Duration {
	b.Helper()
	const scheduler = 2 // number of the clock among those of a process, as in clock_getcpuclockid(3)
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduler), &ts); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// BenchmarkRealStacks compares the cost of stacks of the distribution's programs, which
// have no frame pointers, with F, as in BenchmarkOverhead. The kernel's helper finds only
// one frame there and is no alternative.
func BenchmarkRealStacks(b *testing.B) {
	testutil.NeedBPF(b)
	for _, w := range workloads() {
		b.Run(w.name, func(b *testing.B) { w.compare(b) })
	}
}

func (w *workload) compare(b *testing.B) {
	variants := []struct {
		name    string
		options plan.Options
	}{
		{"events/F", plan.Options{}},
		{"cached/F", plan.Options{Depth: plan.DefaultDepth, Unwind: plan.UnwindEH}},
		{"unwound/F", plan.Options{Depth: plan.DefaultDepth, Unwind: plan.UnwindEH, Testing: plan.TestOptions{NoStackCache: true}}},
		{"helper/F", plan.Options{Depth: plan.DefaultDepth, Unwind: plan.UnwindHelper}},
	}
	s := samples{}
	for b.Loop() {
		base := w.cost(b, untraced)
		floor := w.cost(b, empty(b)) - base
		s.add("untraced-ms", base/1e6)
		for _, v := range variants {
			seen := stacksSeen{}
			over := w.cost(b, observed(b, v.options, seen.add, &seen.Stats)) - base
			s.add(v.name, over/floor)
			if v.options.Depth == 0 {
				s.add("F-ns/pair", floor/float64(seen.Allocs+seen.Moves))
				s.add("kpairs", float64(seen.Allocs+seen.Moves)/1000)
			}
			if v.name == "cached/F" {
				seen.report(s)
			}
		}
	}
	for name := range s {
		b.ReportMetric(s.median(name), name)
	}
}

// stacksSeen counts the stacks of a traced run.
type stacksSeen struct {
	record.Stats
	frames uint64
}

func (x *stacksSeen) add(rec *trace.Record) {
	if rec.Kind == trace.KindCall {
		x.frames += uint64(len(rec.Call.Stack.Frames))
	}
}

func (x *stacksSeen) report(s samples) {
	total := uint64(0)
	for _, n := range x.Stacks {
		total += n
	}
	s.add("frames", float64(x.frames)/float64(total))
	s.add("distinct", float64(x.DistinctStacks))
	s.add("complete-%", 100*float64(x.Stacks[trace.StackComplete])/float64(total))
	s.add("truncated-%", 100*float64(x.Stacks[trace.StackTruncated])/float64(total))
	s.add("hits-%", 100*(1-float64(x.Work.Walks)/float64(total)))
	s.add("searches/walk", float64(x.Work.Searches)/float64(max(x.Work.Walks, 1)))
}

func workloads() []workload {
	return []workload{
		pythonWorkload("python-json", "malloc", `import json`, `
rows = [{"id": i, "name": "name %d" % i, "tags": ["a", "b", str(i)], "x": i / 7} for i in range(1000)]
for _ in range(15):
    json.loads(json.dumps(rows))`),
		pythonWorkload("python-objects", "malloc", ``, `
class Point:
    def __init__(self, x, y):
        self.x, self.y, self.label = x, y, "%d,%d" % (x, y)
def grow(depth):
    return [Point(depth, depth / 3)] + (grow(depth - 1) if depth else [])
for i in range(80):
    points = [Point(j, j * 1.5) for j in range(500)]
    index = {p.label: (p.x, p.y) for p in sorted(points, key=lambda p: -p.y)}
    grow(30)`),
		pythonWorkload("python-sqlite", "default", `import sqlite3`, `
db = sqlite3.connect(":memory:")
db.execute("create table t(a integer primary key, b text, c real)")
for i in range(40000):
    db.execute("insert into t values(?, ?, ?)", (i, "text %d" % i, i / 7))
db.execute("create index tb on t(b)")
for i in range(40000):
    db.execute("select c from t where b = ?", ("text %d" % i,)).fetchall()
db.execute("select b, count(*), sum(c) from t group by a % 100 order by b").fetchall()`),
		{"sqlite3", startSQLite},
		{"cc1plus", startCompiler},
	}
}

// pythonWorkload runs a script after the gate. The interpreter's own allocator, which
// serves small objects, is switched on or off.
func pythonWorkload(name, allocator, imports, script string) workload {
	const gate = "\nimport os\nos.write(3, b'ready\\n')\nos.read(4, 1)\n"
	return workload{name, func(b *testing.B) (*exec.Cmd, *testutil.Child, func()) {
		cmd := exec.Command(installed(b, "/usr/bin/python3"), "-c", imports+gate+script)
		cmd.Env = append(os.Environ(), "PYTHONMALLOC="+allocator)
		child := testutil.Start(b, cmd)
		child.Ready()
		return cmd, child, child.Go
	}}
}

func startSQLite(b *testing.B) (*exec.Cmd, *testutil.Child, func()) {
	const script = "create table t(a,b);" +
		" with recursive n(i) as (select 1 union all select i+1 from n where i<200000) insert into t select i,'text '||i from n;" +
		" create index ti on t(b);" +
		" select a, group_concat(b) from t where b like '%7%' group by a % 100 order by b; select json_group_array(b) from t;\n"
	cmd := exec.Command(installed(b, "sqlite3"), ":memory:")
	child, feed := fed(b, cmd, "select 'up';", "up")
	return cmd, child, func() { finishWith(b, feed, script) }
}

func startCompiler(b *testing.B) (*exec.Cmd, *testutil.Child, func()) {
	text := generated(b)
	cmd := compiler(b, "-O1")
	child, feed := compiling(b, cmd)
	return cmd, child, func() { finishWith(b, feed, text) }
}

// generated returns preprocessed C++ that takes the compiler a third of a second.
func generated(b *testing.B) string {
	b.Helper()
	var text strings.Builder
	text.WriteString("#include <functional>\n#include <map>\n#include <string>\n#include <vector>\n" +
		"template <int N> struct shape { std::map<std::string, std::vector<int>> all;\n" +
		"int run(int n) { for (int i = 0; i < n; i++) all[std::to_string(i)].push_back(N);\n" +
		"std::function<int(int)> f = [this](int x) { return x + int(all.size()); }; return f(N); } };\n" +
		"int main(int n, char **) { int sum = 0;\n")
	for i := range 5 {
		fmt.Fprintf(&text, "sum += shape<%d>().run(n);\n", i)
	}
	text.WriteString("return sum; }\n")
	path := filepath.Join(b.TempDir(), "source.cpp")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	return preprocessed(b, path)
}

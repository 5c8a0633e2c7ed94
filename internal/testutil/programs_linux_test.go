package testutil

import (
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { Main(m) }

// TestPrograms runs each program of testdata/progs without a tracer. Its report about its own
// calls must match what its comment promises.
func TestPrograms(t *testing.T) {
	tests := []struct {
		name  string
		run   func(t *testing.T) *Report
		calls map[string]uint64 // by function
		ops   map[string]uint64
		live  int // blocks left, according to the log; or unordered
		bytes uint64
		more  func(r *Report) bool // what else must be true, if anything
	}{
		{
			name:  "alloc",
			run:   gated("alloc", "1", "100", "log"),
			calls: map[string]uint64{"malloc": 101, "calloc": 100, "realloc": 100, "free": 200},
			ops:   map[string]uint64{"alloc": 201, "move": 100, "free": 200, "none": 0},
			live:  1, bytes: 1000,
		},
		{
			name:  "alloc in threads",
			run:   gated("alloc", "8", "1000", "log"),
			calls: map[string]uint64{"malloc": 8008, "calloc": 8000, "realloc": 8000, "free": 16000},
			ops:   map[string]uint64{"alloc": 16008, "move": 8000, "free": 16000, "none": 0},
			live:  8, bytes: 8028,
		},
		{
			name: "phases",
			run: func(t *testing.T) *Report {
				child := Spawn(t, Build(t, "phases"), "3", "10")
				for range 4 {
					child.Ready()
					child.Go()
				}
				return child.Report()
			},
			calls: map[string]uint64{"malloc": 30, "free": 27},
			ops:   map[string]uint64{"alloc": 30, "move": 0, "free": 27, "none": 0},
			live:  3, bytes: 1000 + 1001 + 1002,
		},
		{
			name: "every",
			run:  gated("every"),
			calls: map[string]uint64{
				"malloc": 5, "calloc": 2, "realloc": 5, "reallocarray": 3, "posix_memalign": 2,
				"aligned_alloc": 1, "memalign": 1, "valloc": 1, "pvalloc": 1, "free": 4,
			},
			ops:  map[string]uint64{"alloc": 12, "move": 3, "free": 4, "none": 6},
			live: 8, bytes: 100 + 400 + 200 + 128 + 100 + 10 + 10 + 6,
		},
		{
			name:  "leak",
			run:   gated("leak"),
			calls: map[string]uint64{"malloc": 12, "calloc": 2, "realloc": 1, "free": 7},
			ops:   map[string]uint64{"alloc": 14, "move": 1, "free": 7, "none": 0},
			live:  7, bytes: 28000,
			more: func(r *Report) bool { return len(r.Leaks) == 7 && r.Leaks["alloc_g"] == 7000 },
		},
		{
			name: "dl",
			run: func(t *testing.T) *Report {
				return gated("dl", Build(t, "plug", "-shared", "-fPIC"), "20")(t)
			},
			calls: map[string]uint64{"malloc": 20},
			ops:   map[string]uint64{"alloc": 20, "move": 0, "free": 0, "none": 0},
			live:  20, bytes: 20*100 + 19*20/2,
		},
		{
			name:  "mmapexec",
			run:   gated("mmapexec", "/proc/self/exe", "5"),
			calls: map[string]uint64{"malloc": 5},
			ops:   map[string]uint64{"alloc": 5, "move": 0, "free": 0, "none": 0},
			live:  5, bytes: 320,
			more: func(r *Report) bool { return len(r.Maps) == 5 && r.Maps[0].Size == r.Maps[4].Size },
		},
		{
			name:  "threads_exit",
			run:   gated("threads_exit", "20"),
			calls: map[string]uint64{"malloc": 8 * 62, "free": 8 * 61},
			ops:   map[string]uint64{"alloc": 8 * 62, "move": 0, "free": 8 * 61, "none": 0},
			live:  8, bytes: 2400,
		},
		{
			name:  "realloc_race",
			run:   gated("realloc_race", "2", "50", "log"),
			calls: map[string]uint64{"malloc": 2 * 50 * 9, "realloc": 2 * 50 * 7, "free": 2 * 50 * 9},
			ops:   map[string]uint64{"alloc": 900, "move": 700, "free": 900, "none": 0},
			live:  unordered,
		},
		{
			name:  "cxx",
			run:   gated("cxx", "10"),
			calls: map[string]uint64{"operator new": 161, "operator delete": 150},
			ops:   map[string]uint64{"alloc": 151, "move": 0, "free": 150, "none": 10},
			live:  1, bytes: 4000,
			more: func(r *Report) bool { return r.Caught == 20 },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := test.run(t)
			calls := make(map[string]uint64)
			for name, n := range r.Functions {
				calls[name] = n.Calls
			}
			if d := cmp.Diff(test.calls, calls); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
			if d := cmp.Diff(test.ops, r.Ops); d != "" {
				t.Errorf("operations (-want +got):\n%s", d)
			}
			checkLog(t, r)
			if test.more != nil && !test.more(r) {
				t.Errorf("unexpected report: %+v", r)
			}
			if test.live == unordered {
				return
			}
			live := r.Live()
			var bytes uint64
			for _, c := range live {
				bytes += c.Size
			}
			if len(live) != test.live || bytes != test.bytes {
				t.Errorf("%d blocks with %d bytes left, want %d with %d", len(live), bytes, test.live, test.bytes)
			}
		})
	}
}

// unordered is the live count of a program whose threads share addresses: the logs of the
// threads do not contain the order between threads.
const unordered = -1

// gated runs a program through its gate.
func gated(name string, args ...string) func(t *testing.T) *Report {
	return func(t *testing.T) *Report {
		c := Spawn(t, Build(t, name), args...)
		c.Ready()
		c.Go()
		return c.Report()
	}
}

// checkLog compares the counts of a report with its log.
func checkLog(t *testing.T, r *Report) {
	t.Helper()
	functions := make(map[string]Count)
	ops := map[string]uint64{"alloc": 0, "free": 0, "move": 0, "none": 0}
	tids := make(map[int]bool)
	for _, tid := range r.TIDs {
		tids[tid] = true
	}
	for _, c := range r.Calls {
		n := functions[c.Function]
		n.Calls++
		if c.Op == "alloc" || c.Op == "move" {
			n.Bytes += c.Size
		}
		functions[c.Function] = n
		ops[c.Op]++
		if !tids[c.TID] {
			t.Fatalf("call of thread %d, which is not in %v", c.TID, r.TIDs)
		}
		if (c.Op == "alloc" || c.Op == "move") && c.Ptr == 0 || (c.Op == "free" || c.Op == "move") && c.Old == 0 {
			t.Errorf("call without its block: %+v", c)
		}
	}
	if d := cmp.Diff(r.Functions, functions); d != "" {
		t.Errorf("log against counts of functions (-counts +log):\n%s", d)
	}
	if d := cmp.Diff(r.Ops, ops); d != "" {
		t.Errorf("log against counts of operations (-counts +log):\n%s", d)
	}
}

func TestLoop(t *testing.T) {
	path := Build(t, "loop")
	t.Run("pairs", func(t *testing.T) {
		c := Spawn(t, path, "3", "1000", "48")
		c.Ready()
		c.Go()
		r := c.Report()
		if r.Pairs != 3000 || len(r.TIDs) != 3 {
			t.Errorf("%d pairs in %d threads, want 3000 in 3", r.Pairs, len(r.TIDs))
		}
		want := map[string]Count{"malloc": {3000, 3000 * 48}, "free": {3000, 0}}
		if d := cmp.Diff(want, r.Functions); d != "" {
			t.Errorf("counts (-want +got):\n%s", d)
		}
	})
	ends := map[string]func(*Child){
		"until a byte":      func(c *Child) { c.Go() },
		"until end of file": func(c *Child) { c.Close() },
		"until SIGTERM":     func(c *Child) { c.Signal(unix.SIGTERM) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			c := Spawn(t, path, "2")
			c.Ready()
			c.Go()
			end(c)
			r := c.Report()
			if r.Pairs != r.Functions["malloc"].Calls || r.Pairs != r.Functions["free"].Calls {
				t.Errorf("pairs and calls differ: %+v", r)
			}
		})
	}
}

func TestExec(t *testing.T) {
	c := Spawn(t, Build(t, "exec"), "3", Build(t, "leak"))
	c.Ready()
	c.Go()
	c.Ready()
	c.Go()
	c.Succeed()
	all, err := ParseReports(c.Output())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 {
		t.Fatalf("%d reports, want 2", len(all))
	}
	for i, live := range []int{3, 7} {
		checkLog(t, all[i])
		if n := len(all[i].Live()); n != live || all[i].PID != c.PID {
			t.Errorf("report %d: %d blocks left in process %d, want %d in %d", i, n, all[i].PID, live, c.PID)
		}
	}
}

func TestCrash(t *testing.T) {
	tests := []struct {
		how  string
		code int
	}{
		{"segv", 128 + int(unix.SIGSEGV)},
		{"abort", 128 + int(unix.SIGABRT)},
		{"kill", 128 + int(unix.SIGKILL)},
		{"exit", 7},
	}
	for _, test := range tests {
		t.Run(test.how, func(t *testing.T) {
			c := Spawn(t, Build(t, "crash"), test.how, "4")
			c.Ready()
			c.Go()
			if code := c.Wait(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			r, err := ParseReport(c.Output())
			if err != nil {
				t.Fatal(err)
			}
			checkLog(t, r)
			if n := r.Functions["malloc"].Calls; n != 4 {
				t.Errorf("%d calls of malloc, want 4", n)
			}
		})
	}
}

func TestSeccomp(t *testing.T) {
	for _, how := range []string{"probes", "others", "strict"} {
		c := Spawn(t, Build(t, "seccomp"), how, "4")
		c.Ready()
		c.Go()
		r := c.Report()
		checkLog(t, r)
		if n := r.Functions["malloc"].Calls; n != 4 {
			t.Errorf("%s: %d calls of malloc, want 4", how, n)
		}
	}
}

// TestByHand runs a program without a gate.
func TestByHand(t *testing.T) {
	out, err := exec.Command(Build(t, "alloc"), "2", "3").Output()
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseReport(out)
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Functions["free"].Calls; n != 12 || len(r.Calls) != 0 {
		t.Errorf("%d frees and %d logged calls, want 12 and none", n, len(r.Calls))
	}
}

// TestGateClosed checks that no program outlives the test that holds it.
func TestGateClosed(t *testing.T) {
	c := Spawn(t, Build(t, "loop"), "1")
	c.Ready()
	c.Close()
	if code := c.Wait(); code != 98 {
		t.Errorf("exit code %d, want 98", code)
	}
}

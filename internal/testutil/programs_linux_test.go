package testutil

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { Main(m) }

// TestPrograms runs each program of testdata/progs without a tracer: what it
// says about its calls must be what its comment promises.
func TestPrograms(t *testing.T) {
	tests := []struct {
		name  string
		run   func(t *testing.T) *Report
		calls map[string]uint64 // by function
		ops   map[string]uint64
		live  int // blocks left, by the log
		bytes uint64
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
			live := r.Live()
			var bytes uint64
			for _, c := range live {
				bytes += c.Size
			}
			if len(live) != test.live || bytes != test.bytes {
				t.Errorf("%d blocks with %d bytes left, want %d with %d", len(live), bytes, test.live, test.bytes)
			}
			checkLog(t, r)
		})
	}
}

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

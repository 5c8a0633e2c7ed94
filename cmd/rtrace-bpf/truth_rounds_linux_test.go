package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/internal/testutil/truth"
)

// round is a run of the program schedule, and how it is traced. The seed determines all of
// it.
type round struct {
	Seed       uint32
	Narrow     bool // a 32-bit program
	Mechanism  string
	Threads    int
	Operations int // of each thread
	Depth      int // frames in the log; 0 for no stacks
	Least      int // fewest events to compare
	End        string
}

// ends are the ways in which the program ends. TestExecByThread checks exec by a thread.
var ends = []string{"return", "exit", "_exit", "quick_exit", "abort", "kill", "segv", "thread", "running", "exec"}

// possible replaces an end with which a trace cannot be whole. When the main thread ends
// before the others, the kernel removes perf events from the process until they are
// attached again. It also removes links of uprobe_multi when another tracer leaves the C
// library, so only a soak, which runs alone, has this end.
func (r round) possible() round {
	alone := os.Getenv("SOAK_TIME") != "" || os.Getenv("SOAK_SEED") != ""
	if r.End == "thread" && (!alone || strings.Contains(strings.Join(mechanisms[r.Mechanism], " "), "--mechanism perf")) {
		r.End = "return"
	}
	return r
}

func (r round) name() string {
	width := 64
	if r.Narrow {
		width = 32
	}
	return fmt.Sprintf("%d-bit-%s-%s-%d", width, r.Mechanism, r.End, r.Threads)
}

// newRound returns the round of a seed. If narrow is set, its program may have 32 bits.
func newRound(seed uint32, narrow bool) round {
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	names := mechanismNames()
	r := round{
		Seed: seed, Narrow: random.IntN(3) == 0 && narrow, Mechanism: names[random.IntN(len(names))],
		Threads: 1 + random.IntN(12), Operations: 1000 + random.IntN(40000), End: ends[random.IntN(len(ends))],
	}
	if random.IntN(2) == 0 {
		r.Depth, r.Operations = 32, r.Operations/4
	}
	return r.possible()
}

// roundsOfEachKind returns small rounds, one for each end of the program. The mechanisms
// and, with narrow, the widths take turns.
func roundsOfEachKind(seed uint32, narrow bool) []round {
	var all []round
	names := mechanismNames()
	for i, end := range ends {
		r := round{
			Seed: seed + uint32(i), Mechanism: names[i%len(names)], End: end, Narrow: narrow && i/2%2 == 1,
			Threads: 8, Operations: 1000, Depth: 32,
		}
		all = append(all, r.possible())
	}
	return all
}

// schedule starts the program that makes random calls under the shim.
func schedule(t *testing.T, build testutil.Builder, r round) *shimmed {
	t.Helper()
	return underShim(t, build, r.Depth, "schedule", fmt.Sprint(r.Seed), fmt.Sprint(r.Threads), fmt.Sprint(r.Operations),
		r.End, build(t, "plug", "-shared", "-fPIC"))
}

// run compares the round's trace with the shim's log, and the trace in other formats with
// the first one.
func (r round) run(t *testing.T) *truth.Checker {
	t.Helper()
	build := testutil.Build
	if r.Narrow {
		build = testutil.Build32
	}
	args := []string{"-A", "-b", fmt.Sprint(r.Depth)}
	s := schedule(t, build, r)
	path := s.traced(slices.Concat(args, mechanisms[r.Mechanism])...)
	c := s.equal(path)
	if c.Events == 0 || c.Events < r.Least || c.Threads < r.Threads || r.Depth > 0 && c.Stacks == 0 {
		t.Errorf("compared were %s", roundFigures(c))
	}
	if !t.Failed() {
		everyFormat(t, path)
	}
	return c
}

// roundFigures returns a text about what was compared.
func roundFigures(c *truth.Checker) string {
	return fmt.Sprintf("%d events of %d threads in %d programs, at most %d blocks live, %d moves split, %d reallocs given up, %d stacks (%d through code that was just loaded)",
		c.Events, c.Threads, c.Programs, c.MostLive(), c.Split, c.Early, c.Stacks, c.Broken)
}

// seed returns the first seed of a test with random numbers: SOAK_SEED, or a random number.
func seed(t *testing.T) uint32 {
	t.Helper()
	n := rand.Uint32()
	if text := os.Getenv("SOAK_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatalf("SOAK_SEED: %v", err)
		}
		n = uint32(given)
	}
	t.Logf("seed %d (to repeat: SOAK_SEED=%d)", n, n)
	return n
}

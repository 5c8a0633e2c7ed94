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

// round is a run of the program that does everything, and how it is traced. All of
// it follows from the seed.
type round struct {
	Seed       uint32
	Narrow     bool // a 32-bit program
	Mechanism  string
	Threads    int
	Operations int // of each thread
	Depth      int // frames of the log, 0 for no stacks
	Least      int // events
	End        string
}

// ends are how that program ends. What becomes of an exec by a thread is another
// test's matter.
var ends = []string{"return", "exit", "_exit", "quick_exit", "abort", "kill", "segv", "thread", "running", "exec"}

// possible replaces what cannot be whole. From a process whose main thread ends before
// the others the kernel takes perf events away, until they are attached again, and
// links of uprobe_multi when a tracer beside this one leaves the C library: so only a
// soak, which runs alone, has such an end.
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

// newRound chooses a round by its seed. narrow reports whether it may be of a 32-bit
// program.
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

// roundsOfEachKind are small ones: each end of the program once, with the ways of the
// tracer and, with narrow, the widths in turn.
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

// schedule starts the program that does everything.
func schedule(t *testing.T, build testutil.Builder, r round) *shimmed {
	t.Helper()
	return underShim(t, build, r.Depth, "schedule", fmt.Sprint(r.Seed), fmt.Sprint(r.Threads), fmt.Sprint(r.Operations),
		r.End, build(t, "plug", "-shared", "-fPIC"))
}

// run compares the round's trace with what the shim saw, and all formats with it.
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

// figures says what was compared.
func roundFigures(c *truth.Checker) string {
	return fmt.Sprintf("%d events of %d threads in %d programs, at most %d blocks live, %d moves split, %d reallocs given up, %d stacks (%d through code that was just loaded)",
		c.Events, c.Threads, c.Programs, c.MostLive(), c.Split, c.Early, c.Stacks, c.Broken)
}

// seed returns the number that a test with random numbers begins with: SOAK_SEED,
// or another one each time.
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

package main

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"rtrace-bpf/internal/testutil"
)

// TestSoak runs rounds with random numbers, one after the other, until SOAK_TIME is
// over, and compares SOAK_EVENTS events in one run first; it ends at the first
// difference. SOAK_SEED alone repeats the round of that seed; without either it is one
// small round. `make soak` is for people. It is a test, since all that it needs of
// building, starting and cleaning up is here.
func TestSoak(t *testing.T) {
	testutil.NeedBPF(t)
	first, start := seed(t), time.Now()
	limit := soakTime(t)
	if limit > 0 {
		long := round{
			Seed: first, Mechanism: "best", Threads: 8, End: "return",
			Operations: soakEvents(t)*operationsPer100/100/8 + 1, Least: soakEvents(t),
		}
		if !soakRound(t, 0, long) {
			return
		}
	}
	for n := 1; ; n++ {
		r := newRound(first+uint32(n-1), testutil.Runs32Bit(t))
		if limit == 0 && os.Getenv("SOAK_SEED") == "" {
			r.Operations = min(r.Operations, 1000)
		}
		if !soakRound(t, n, r) || time.Since(start) >= limit {
			return
		}
	}
}

// operationsPer100 is how many operations of the program make 100 events for sure; on
// average 33 do.
const operationsPer100 = 36

// soakRound runs a round with nothing left behind, and says what it compared.
func soakRound(t *testing.T, n int, r round) bool {
	t.Helper()
	start, line := time.Now(), ""
	ok := t.Run(fmt.Sprintf("%d-%s", n, r.name()), func(t *testing.T) { line = roundFigures(r.run(t)) })
	verdict := "equal"
	switch {
	case !ok:
		verdict = "DIFFERENT"
	case line == "":
		verdict = "skipped"
	}
	t.Logf("round %d: seed %d, %s, %d operations, %d frames: %s in %v: %s", n, r.Seed, r.name(), r.Operations, r.Depth,
		verdict, time.Since(start).Round(time.Millisecond), line)
	return ok
}

// soakTime returns SOAK_TIME.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SOAK_TIME")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("SOAK_TIME=%q is no duration, as 30m", text)
	}
	return d
}

// soakEvents returns SOAK_EVENTS.
func soakEvents(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SOAK_EVENTS")
	if text == "" {
		return 10_000_000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		t.Fatalf("SOAK_EVENTS=%q is no number", text)
	}
	return n
}

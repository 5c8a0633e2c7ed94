package main

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"rtrace-bpf/internal/testutil"
)

// TestSoak runs rounds with random numbers one after the other until SOAK_TIME has passed,
// after one run of SOAK_EVENTS events, and ends at the first difference. With SOAK_SEED
// alone it repeats the round of that seed; with neither it runs one small round. It is a
// test because tests have all that it needs to build, start and clean up; people run it
// with `make soak`.
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

// operationsPer100 is how many operations of the program make at least 100 events; on
// average 33 do.
const operationsPer100 = 36

// soakRound runs a round as a subtest, logs what it compared, and reports whether the trace
// was equal.
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

// soakTime returns the value of SOAK_TIME, 0 if it is unset.
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

// soakEvents returns the value of SOAK_EVENTS, 10 million if it is unset.
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

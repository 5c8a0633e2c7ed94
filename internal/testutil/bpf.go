package testutil

import (
	"fmt"
	"os"
	"testing"
)

// NeedBPF skips the test, with the reason, if this process may not load BPF programs and attach
// uprobes. With RTRACE_REQUIRE_BPF set the test fails instead. `make test` lists what was
// skipped.
func NeedBPF(t testing.TB) {
	t.Helper()
	if Preparing() {
		return // the test may build programs before it starts one
	}
	needBPF(t, noBPF())
}

func needBPF(t testing.TB, reason error) {
	t.Helper()
	if reason == nil {
		return
	}
	line := fmt.Sprintf("SKIPPED-NEEDS-BPF: %v", reason)
	if os.Getenv("RTRACE_REQUIRE_BPF") != "" {
		t.Fatal(line)
	}
	t.Skip(line)
}

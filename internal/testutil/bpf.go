package testutil

import (
	"fmt"
	"os"
	"testing"
)

// NeedBPF skips the test if this process may not load BPF programs and attach
// uprobes, and says so where `make test` finds it: in the file that
// RTRACE_SKIPPED names, because go test keeps a passing package's output to
// itself. With RTRACE_REQUIRE_BPF set the test fails instead.
func NeedBPF(t testing.TB) {
	t.Helper()
	needBPF(t, noBPF())
}

func needBPF(t testing.TB, reason error) {
	t.Helper()
	if reason == nil {
		return
	}
	line := fmt.Sprintf("SKIPPED-NEEDS-BPF: %s: %v", t.Name(), reason)
	if os.Getenv("RTRACE_REQUIRE_BPF") != "" {
		t.Fatal(line)
	}
	if path := os.Getenv("RTRACE_SKIPPED"); path != "" {
		if err := appendLine(path, line); err != nil {
			t.Errorf("note the skipped test: %v", err)
		}
	}
	t.Skip(line)
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

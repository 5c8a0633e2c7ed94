package testutil

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNeedBPF(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "skipped")
	t.Setenv("RTRACE_SKIPPED", notes)
	t.Setenv("RTRACE_REQUIRE_BPF", "")
	reason := errors.New("the kernel is asleep")
	const line = "SKIPPED-NEEDS-BPF: TestRecorded: the kernel is asleep"

	if got := fatal(func(r *recorder) { needBPF(r, nil) }); got != "" {
		t.Errorf("with BPF the test ended: %q", got)
	}
	if _, err := os.Stat(notes); err == nil {
		t.Error("with BPF a skip was noted")
	}
	for range 2 {
		if got := fatal(func(r *recorder) { needBPF(r, reason) }); got != "skip: "+line {
			t.Errorf("without BPF: %q, want a skip with %q", got, line)
		}
	}
	text, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat(line+"\n", 2); string(text) != want {
		t.Errorf("noted %q, want %q", text, want)
	}

	t.Setenv("RTRACE_REQUIRE_BPF", "1")
	if got := fatal(func(r *recorder) { needBPF(r, reason) }); got != line {
		t.Errorf("where BPF is required: %q, want a failure with %q", got, line)
	}
}

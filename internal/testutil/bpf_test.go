package testutil

import (
	"errors"
	"testing"
)

func TestNeedBPF(t *testing.T) {
	t.Setenv("RTRACE_REQUIRE_BPF", "")
	reason := errors.New("the kernel is asleep")
	const line = "SKIPPED-NEEDS-BPF: the kernel is asleep"

	if got := fatal(func(r *recorder) { needBPF(r, nil) }); got != "" {
		t.Errorf("with BPF the test ended: %q", got)
	}
	if got := fatal(func(r *recorder) { needBPF(r, reason) }); got != "skip: "+line {
		t.Errorf("without BPF: %q, want a skip with %q", got, line)
	}
	t.Setenv("RTRACE_REQUIRE_BPF", "1")
	if got := fatal(func(r *recorder) { needBPF(r, reason) }); got != line {
		t.Errorf("where BPF is required: %q, want a failure with %q", got, line)
	}
}

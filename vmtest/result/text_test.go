package result

import (
	"strings"
	"testing"
)

// The slowest tests come first. Subtests and quick ones are left out, and no more are listed
// than fit into a line.
func TestSlow(t *testing.T) {
	r := &Run{Title: "6.1", Arch: "arm64", Tests: []*Test{
		{Name: "TestQuick", Seconds: 19.9},
		{Name: "TestSlow", Seconds: 20},
		{Name: "TestSlower", Seconds: 31.6},
		{Name: "TestSlower/part", Seconds: 30},
		{Name: "", Seconds: 100},
	}}
	var out strings.Builder
	Slow(&out, r)
	if want := "slowest on linux-6.1-arm64: TestSlower 32 s, TestSlow 20 s\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	for range slowest {
		r.Tests = append(r.Tests, &Test{Name: "TestSlowest", Seconds: 50})
	}
	out.Reset()
	if Slow(&out, r); strings.Count(out.String(), "TestSlowest 50 s") != slowest || strings.Contains(out.String(), "TestSlower") {
		t.Errorf("%q", out.String())
	}
	out.Reset()
	if Slow(&out, &Run{Title: "6.1", Tests: r.Tests[:1]}); out.String() != "" {
		t.Errorf("%q", out.String())
	}
}

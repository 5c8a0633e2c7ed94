package result

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnmatched(t *testing.T) {
	made := func() []*Run {
		return []*Run{
			{Tests: []*Test{{Name: "TestA", Status: Passed}, {Name: "TestA/one-ring", Status: Passed}, {Status: Passed}}},
			{Tests: []*Test{{Name: "TestB", Status: Passed}, {Name: "TestB/x|y", Status: Skipped}}},
			{Missing: "no suite has it"},
		}
	}
	tests := map[string][]string{
		"":                             nil,
		"TestA":                        nil,
		"^TestA$|^TestB$":              nil,
		"TestA/(one|two)-ring|TestC":   {"TestC"},
		"TestA/two|TestB/[|/]y":        {"TestA/two"},
		`TestB/x\|y|TestA/one/deeper`:  {"TestA/one/deeper"},
		"^Test$|TestA/^ring$":          {"^Test$", "TestA/^ring$"},
		"Test(A|B)/(one-(ring|other))": nil,
	}
	for pattern, want := range tests {
		runs := made()
		if d := cmp.Diff(want, Unmatched(pattern, runs)); d != "" {
			t.Errorf("%s (-want +got):\n%s", pattern, d)
		}
		if good := len(want) == 0; runs[0].Good() != good || runs[1].Good() != good || !runs[2].Good() {
			t.Errorf("%s: %v, %v, %v", pattern, runs[0], runs[1], runs[2])
		}
	}
}

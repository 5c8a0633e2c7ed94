package folded_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/folded"
)

// profile returns a profile with two stacks with the same text, one without
// live bytes, and names that must be escaped.
func profile() *stacks.Profile {
	of := func(allocated, inUse uint64, stack ...int) stacks.Sample {
		return stacks.Sample{Stack: stack, Usage: usage.Usage{
			Allocated: live.Amount{Blocks: 3, Bytes: allocated}, Live: live.Amount{Blocks: 2, Bytes: inUse},
		}}
	}
	return &stacks.Profile{
		Locations: []stacks.Location{
			{Addr: 1, Lines: []stacks.Line{{Function: "inlined"}, {Function: "f(int, char)"}}},
			{Addr: 2, Lines: []stacks.Line{{Function: "main"}}},
			{Addr: 3, Lines: []stacks.Line{{Function: "main"}}},
			{Addr: 4, Lines: []stacks.Line{{Function: "a;b\nc"}}},
			{Lines: []stacks.Line{{}}},
		},
		Samples: []stacks.Sample{of(100, 10, 0, 1), of(50, 5, 0, 2), of(7, 0, 1), of(9, 1<<63, 4, 3)},
	}
}

func TestWrite(t *testing.T) {
	for v, want := range map[stacks.Value]string{
		stacks.InuseSpace:   "a:b?c;?? 9223372036854775808\nmain;f(int, char);inlined 15\n",
		stacks.AllocSpace:   "a:b?c;?? 9\nmain 7\nmain;f(int, char);inlined 150\n",
		stacks.AllocObjects: "a:b?c;?? 3\nmain 3\nmain;f(int, char);inlined 6\n",
	} {
		var out strings.Builder
		if err := folded.Write(&out, profile(), v); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, out.String()); d != "" {
			t.Errorf("%v (-want +got):\n%s", v, d)
		}
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteFails(t *testing.T) {
	if err := folded.Write(full{}, profile(), stacks.InuseSpace); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
}

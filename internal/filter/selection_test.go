package filter_test

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/filter"
	"rtrace-bpf/trace"
)

// selected returns the numbers of the selected calls.
func selected(t *testing.T, records []*trace.Record, s filter.Selection) (seqs []uint64, others []trace.Kind) {
	t.Helper()
	got, err := trace.Load(filter.NewSelect(&list{err: io.EOF, records: records}, &s))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range got {
		if r.Kind == trace.KindCall {
			seqs = append(seqs, r.Call.Seq)
		} else {
			others = append(others, r.Kind)
		}
	}
	return seqs, others
}

func TestSelect(t *testing.T) {
	resource := func(id uint32) *trace.Record {
		return &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: id}}
	}
	context := func(id uint32) *trace.Record {
		return &trace.Record{Kind: trace.KindContext, Context: trace.Context{ID: id}}
	}
	of := func(seq uint64, resource, context uint32, frames ...uint64) *trace.Record {
		r := call(seq, trace.OpAlloc, seq)
		r.Call.Resource, r.Call.Context, r.Call.Stack.Frames = resource, context, frames
		return r
	}
	records := func() []*trace.Record {
		return []*trace.Record{
			resource(1), resource(3), resource(33), context(1), context(4),
			of(1, 1, 0, 10, 20, 30), of(2, 3, 1, 10), of(3, 33, 4, 20, 29), of(4, 7, 5), of(5, 0, 0, 30),
		}
	}
	all := []uint64{1, 2, 3, 4, 5}
	for _, tt := range []struct {
		name string
		s    filter.Selection
		want []uint64
		kept int // declarations
	}{
		{"nothing chosen", filter.Selection{}, all, 5},
		{"resource 3; 7 and 0 are not declared", filter.Selection{Resources: 4}, []uint64{2, 4, 5}, 3},
		{"33 has the bit of 1", filter.Selection{Resources: 1}, []uint64{1, 3, 4, 5}, 4},
		{"addresses", filter.Selection{Addresses: struct{ Start, End uint64 }{20, 30}}, []uint64{1, 3}, 5},
		{"addresses in the innermost frame", filter.Selection{Shallow: true, Depth: 1, Addresses: struct{ Start, End uint64 }{20, 30}}, []uint64{3}, 5},
		{"the same, stacks left whole", filter.Selection{Shallow: true, Whole: true, Depth: 1, Addresses: struct{ Start, End uint64 }{20, 30}}, []uint64{3}, 5},
		{"included", filter.Selection{Include: []uint64{2, 4, 9}}, []uint64{2, 4}, 5},
		{"nothing included", filter.Selection{Include: []uint64{}}, nil, 5},
		{"excluded", filter.Selection{Exclude: []uint64{2, 4, 9}}, []uint64{1, 3, 5}, 5},
		{"nothing excluded", filter.Selection{Exclude: []uint64{}}, all, 5},
		{"kept", filter.Selection{Keep: func(c *trace.Call) bool { return c.ID > 3 }}, []uint64{4, 5}, 5},
		{"contexts", filter.Selection{InContext: true, Contexts: 4}, []uint64{3, 4}, 4},
		{"no context", filter.Selection{InContext: true}, []uint64{1, 5}, 3},
		{"all at once", filter.Selection{Resources: 4, InContext: true, Contexts: 1, Exclude: []uint64{4}}, []uint64{2}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, others := selected(t, records(), tt.s)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
			if len(others) != tt.kept {
				t.Errorf("%d declarations, want %d", len(others), tt.kept)
			}
		})
	}
}

// TestSelectStack checks that stacks are cut together with their names, and
// marked as truncated.
func TestSelectStack(t *testing.T) {
	r := call(1, trace.OpAlloc, 1)
	r.Call.Stack = trace.Stack{Frames: []uint64{1, 2, 3}, Names: []string{"a", "b", "c"}, End: trace.StackComplete}
	r.Call.Args = []trace.Arg{{Name: "x", Value: "y"}}
	process := &trace.Record{Kind: trace.KindProcess, Process: trace.Process{Depth: 10}}
	for _, tt := range []struct {
		name string
		s    filter.Selection
		want trace.Stack
		args int
		of   int
	}{
		{"cut", filter.Selection{Shallow: true, Depth: 2}, trace.Stack{Frames: []uint64{1, 2}, Names: []string{"a", "b"}, End: trace.StackTruncated}, 1, 2},
		{"to nothing", filter.Selection{Shallow: true, NoArgs: true}, trace.Stack{Frames: []uint64{}, Names: []string{}, End: trace.StackTruncated}, 0, 0},
		{"deeper than it is", filter.Selection{Shallow: true, Depth: 3}, r.Call.Stack, 1, 3},
		{"left whole", filter.Selection{Shallow: true, Whole: true, Depth: 2}, r.Call.Stack, 1, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := trace.Load(filter.NewSelect(&list{err: io.EOF, records: []*trace.Record{process.Clone(), r.Clone()}}, &tt.s))
			if err != nil || len(got) != 2 {
				t.Fatal(got, err)
			}
			if got[0].Process.Depth != tt.of || len(got[1].Call.Args) != tt.args {
				t.Errorf("depth %d, %d arguments", got[0].Process.Depth, len(got[1].Call.Args))
			}
			if d := cmp.Diff(tt.want, got[1].Call.Stack); d != "" {
				t.Errorf("stack (-want +got):\n%s", d)
			}
		})
	}
}

// TestSelectDeclarations checks that AllCalls selects only declarations, and
// that a second selection knows the declarations that the first has read.
func TestSelectDeclarations(t *testing.T) {
	declared := &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 2}}
	other := call(1, trace.OpAlloc, 1)
	other.Call.Resource = 2
	first := filter.NewSelect(&list{err: io.EOF, records: []*trace.Record{declared, other.Clone()}}, &filter.Selection{Resources: 1})
	first.AllCalls = true
	if got, err := trace.Load(first); err != nil || len(got) != 1 || got[0].Kind != trace.KindCall {
		t.Errorf("%d records, %v", len(got), err)
	}
	if got, err := trace.Load(first.Over(&list{err: io.EOF, records: []*trace.Record{other.Clone()}})); err != nil || len(got) != 0 {
		t.Errorf("%d records, %v", len(got), err)
	}
}

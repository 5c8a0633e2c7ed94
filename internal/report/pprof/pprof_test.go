package pprof_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/pprof"
)

// written writes a profile and reads it with pprof's own package, which
// validates it.
func written(t *testing.T, p *stacks.Profile, v stacks.Value) *profile.Profile {
	t.Helper()
	var out bytes.Buffer
	if err := pprof.Write(&out, p, v); err != nil {
		t.Fatal(err)
	}
	x, err := profile.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.CheckValid(); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestEmpty(t *testing.T) {
	x := written(t, &stacks.Profile{}, stacks.AllocSpace)
	if len(x.Sample) != 0 || len(x.SampleType) != stacks.Values || x.DefaultSampleType != "alloc_space" {
		t.Errorf("%v", x)
	}
}

func TestWrite(t *testing.T) {
	library := stacks.Mapping{Start: 0x1000, End: 0x2000, Offset: 0x1000, Placed: true, Path: "/lib/a.so", BuildID: "ab12"}
	program := stacks.Mapping{Start: 0x5000, End: 0x6000, Offset: 0x2000, Placed: true, Path: "/old/bin/p"}
	unplaced := stacks.Mapping{Start: 0x7000, End: 0x8000, Path: "/lib/b.so"}
	amount := func(blocks, bytes uint64) live.Amount { return live.Amount{Blocks: blocks, Bytes: bytes} }
	p := &stacks.Profile{
		Name: "./p", Start: 12, Duration: 34, Comments: []string{"a\nb"},
		Threads: func(pid, tid int32) string { return map[int32]string{8: "wor\xffker"}[tid] },
		Locations: []stacks.Location{
			{Addr: 0x1100, Mapping: library},
			{Addr: 0x5100, Mapping: program, Lines: []stacks.Line{
				{Function: "in(int)", System: "_Z2ini", File: "a.cc", Line: 3}, {Function: "main", System: "main", File: "a.cc", Line: 9},
			}},
			{Addr: 0x9100},
			{Addr: 0x7100, Mapping: unplaced},
			{Lines: []stacks.Line{{Function: "main", File: "a.cc", Line: math.MaxUint64}}},
		},
		Samples: []stacks.Sample{
			{Stack: []int{0, 1}, Label: stacks.Label{PID: 7, TID: 8, Function: "malloc"}, Usage: usage.Usage{Allocated: amount(3, 5<<32), Live: amount(2, 3<<32)}},
			{Stack: []int{2, 3, 1}, Label: stacks.Label{PID: 6, Thread: 0xab}, Usage: usage.Usage{Allocated: amount(1, math.MaxUint64)}},
			{Stack: []int{4}},
		},
	}
	x := written(t, p, stacks.InuseObjects)
	var types []string
	for _, s := range x.SampleType {
		types = append(types, s.Type+"/"+s.Unit)
	}
	type sample struct {
		Values []int64
		Labels map[string][]string
	}
	var samples []sample
	for _, s := range x.Sample {
		samples = append(samples, sample{s.Value, s.Label})
	}
	for _, tt := range []struct {
		what      string
		want, got any
	}{
		{"types", []string{"alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"}, types},
		{"default", "inuse_objects", x.DefaultSampleType},
		{"times", []int64{12, 34}, []int64{x.TimeNanos, x.DurationNanos}},
		{"comments", []string{"a?b"}, x.Comments},
		{"samples", []sample{
			{[]int64{3, 5 << 32, 2, 3 << 32}, map[string][]string{"thread": {"8 wor\ufffdker"}, "function": {"malloc"}, "process": {"7"}}},
			{[]int64{1, math.MaxInt64, 0, 0}, map[string][]string{"thread": {"0xab"}, "process": {"6"}}},
			{[]int64{0, 0, 0, 0}, nil},
		}, samples},
		{"mappings", []profile.Mapping{
			{ID: 1, Start: 0x5000, Limit: 0x6000, Offset: 0x2000, File: "/old/bin/p", HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true},
			{ID: 2, Start: 0x1000, Limit: 0x2000, Offset: 0x1000, File: "/lib/a.so", BuildID: "ab12"},
			{ID: 3, Start: 0x7000, Limit: 0x8000, File: "/lib/b.so", HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true},
		}, mappings(x)},
		{"functions", []profile.Function{
			{ID: 1, Name: "in(int)", SystemName: "_Z2ini", Filename: "a.cc"},
			{ID: 2, Name: "main", Filename: "a.cc"},
			{ID: 3, Name: "0x0000000000009100"},
		}, functions(x)},
	} {
		if d := cmp.Diff(tt.want, tt.got, cmp.AllowUnexported(profile.Mapping{}, profile.Function{}), cmp.FilterPath(func(p cmp.Path) bool {
			name := p.Last().String()
			return len(name) > 1 && name[0] == '.' && name[1] >= 'a'
		}, cmp.Ignore())); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.what, d)
		}
	}
	inlined := x.Sample[0].Location[1]
	if inlined.Address != 0x50ff || len(inlined.Line) != 2 || inlined.Line[0].Function.Name != "in(int)" || inlined.Line[0].Line != 3 {
		t.Errorf("%+v", inlined)
	}
}

func mappings(p *profile.Profile) (out []profile.Mapping) {
	for _, m := range p.Mapping {
		out = append(out, *m)
	}
	return out
}

func functions(p *profile.Profile) (out []profile.Function) {
	for _, f := range p.Function {
		out = append(out, *f)
	}
	return out
}

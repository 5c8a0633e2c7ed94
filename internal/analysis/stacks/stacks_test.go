package stacks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/trace"
)

func alloc(tid int32, function string, id, size uint64, frames ...uint64) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, PID: 1, TID: tid, Call: trace.Call{
		Op: trace.OpAlloc, Function: function, ID: id, Size: size, Stack: trace.Stack{Frames: frames},
	}}
}

func free(id uint64) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, PID: 1, Call: trace.Call{Op: trace.OpFree, ID: id}}
}

// list formats the samples: stack from the innermost frame, labels, values.
func list(p *stacks.Profile) (lines []string) {
	for _, s := range p.Samples {
		var frames []string
		p.Frames(s.Stack, func(l stacks.Line) { frames = append(frames, l.Function) })
		line := fmt.Sprint(strings.Join(frames, ";"), " ", s.TID, s.Function)
		for v := range stacks.Value(stacks.Values) {
			line += fmt.Sprint(" ", v.Of(&s.Usage))
		}
		lines = append(lines, line)
	}
	return lines
}

// TestBuilder maps another file at the same addresses in between.
func TestBuilder(t *testing.T) {
	file, asked := "a", 0
	locate := func(dst []stacks.Location, r *trace.Record) []stacks.Location {
		asked++
		for _, addr := range r.Call.Stack.Frames {
			at := stacks.Location{Addr: addr, Mapping: stacks.Mapping{Path: file}}
			if addr > 1 {
				at.Lines = []stacks.Line{{Function: fmt.Sprint(file, ".inlined", addr)}, {Function: fmt.Sprint(file, ".f", addr)}}
			}
			dst = append(dst, at)
		}
		return dst
	}
	for _, tt := range []struct {
		name string
		stacks.Options
		want []string
	}{
		{"stacks", stacks.Options{Locate: locate}, []string{
			"b.f3;b.inlined3;b.f2;b.inlined2 0 1000 1 1000 1",
			"a.f3;a.inlined3;a.f2;a.inlined2 0 120 2 130 3",
			"0x0000000000000001 from a 0 0 0 7 1",
		}},
		{"threads", stacks.Options{Locate: locate, Threads: true}, []string{
			"b.f3;b.inlined3;b.f2;b.inlined2 5 1000 1 1000 1",
			"a.f3;a.inlined3;a.f2;a.inlined2 6 100 1 100 1",
			"a.f3;a.inlined3;a.f2;a.inlined2 5 20 1 30 2",
			"0x0000000000000001 from a 5 0 0 7 1",
		}},
		{"functions", stacks.Options{Locate: locate, Functions: true}, []string{
			"b.f3;b.inlined3;b.f2;b.inlined2 0malloc 1000 1 1000 1",
			"a.f3;a.inlined3;a.f2;a.inlined2 0malloc 100 1 110 2",
			"a.f3;a.inlined3;a.f2;a.inlined2 0calloc 20 1 20 1",
			"0x0000000000000001 from a 0malloc 0 0 7 1",
		}},
		{"some", stacks.Options{Locate: locate, Count: func(r *trace.Record) bool { return r.Call.Size > 50 }}, []string{
			"b.f3;b.inlined3;b.f2;b.inlined2 0 1000 1 1000 1",
			"a.f3;a.inlined3;a.f2;a.inlined2 0 100 1 100 1",
		}},
	} {
		file, asked = "a", 0
		b := stacks.NewBuilder(tt.Options)
		for _, r := range []*trace.Record{
			alloc(5, "malloc", 1, 10, 2, 3), free(1), alloc(6, "malloc", 2, 100, 2, 3), alloc(5, "calloc", 3, 20, 2, 3),
			alloc(5, "malloc", 4, 7, 1), free(4),
		} {
			b.Add(r)
		}
		if asked > 2 {
			t.Errorf("%s: Locate was called %d times", tt.name, asked)
		}
		file = "b"
		b.Add(&trace.Record{Kind: trace.KindMapping, PID: 1})
		b.Add(alloc(5, "malloc", 5, 1000, 2, 3))
		if d := cmp.Diff(tt.want, list(b.Profile())); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

func TestValues(t *testing.T) {
	for _, name := range stacks.ValueNames() {
		if v, ok := stacks.ParseValue(name); !ok || v.String() != name {
			t.Errorf("%s: %v, %v", name, v, ok)
		}
	}
	if _, ok := stacks.ParseValue("bytes"); ok {
		t.Error("the value bytes is accepted")
	}
}

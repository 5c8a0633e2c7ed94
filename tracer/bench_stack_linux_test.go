package tracer

import (
	"fmt"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/plan"
)

// BenchmarkStacks compares the cost of stacks of a process without frame pointers with F,
// as in BenchmarkOverhead. The loop program and the C library have four frames.
func BenchmarkStacks(b *testing.B) {
	testutil.NeedBPF(b)
	for _, frames := range []int{6, 20, 40} {
		b.Run(fmt.Sprintf("frames=%d", frames), func(b *testing.B) { compareStacks(b, frames-4, testutil.OmitFramePointers) })
	}
	b.Run("frame-pointers/frames=20", func(b *testing.B) { compareStacks(b, 16) })
}

// compareStacks measures the variants with depth more frames on the stack of a program
// compiled with flags.
func compareStacks(b *testing.B, depth int, flags ...string) {
	variants := []struct {
		name    string
		options plan.Options
	}{
		{"events/F", plan.Options{}},
		{"cached/F", plan.Options{Depth: plan.DefaultDepth}},
		{"unwound/F", plan.Options{Depth: plan.DefaultDepth, Testing: plan.TestOptions{NoStackCache: true}}},
		{"bounded/F", plan.Options{Depth: plan.DefaultDepth, Bounded: true}},
		{"fp/F", plan.Options{Depth: plan.DefaultDepth, Unwind: plan.UnwindFP}},
		{"helper/F", plan.Options{Depth: plan.DefaultDepth, Unwind: plan.UnwindHelper}},
	}
	s := samples{}
	for b.Loop() {
		base := nsPerPairBelow(b, 1, depth, flags, untraced)
		floor := nsPerPairBelow(b, 1, depth, flags, empty(b)) - base
		s.add("F-ns/pair", floor)
		for _, v := range variants {
			s.add(v.name, (nsPerPairBelow(b, 1, depth, flags, traced(b, v.options))-base)/floor)
		}
	}
	for name := range s {
		b.ReportMetric(s.median(name), name)
	}
}

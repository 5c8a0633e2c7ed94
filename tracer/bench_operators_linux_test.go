package tracer

import (
	"strconv"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/plan"
)

// BenchmarkOperators compares the cost of the names of C++ operators with F, as in
// BenchmarkOverhead. With OperatorsAll a pair of new and delete meets three more probes: that of
// new and, since the sized delete jumps to the plain one, two of delete.
func BenchmarkOperators(b *testing.B) {
	testutil.NeedBPF(b)
	program := testutil.Build(b, "loop_cxx")
	cost := func(attach func(pid int) (detach func())) float64 {
		child := testutil.Spawn(b, program, "1", strconv.Itoa(benchPairs))
		child.Ready()
		detach := attach(child.PID)
		child.Go()
		report := child.Report()
		detach()
		return report.NsPerPair
	}
	s := samples{}
	for b.Loop() {
		base := cost(untraced)
		s.add("untraced-ns/pair", base)
		floor := cost(empty(b)) - base
		s.add("F-ns/pair", floor)
		s.add("events/F", (cost(traced(b, plan.Options{}))-base)/floor)
		s.add("new/F", (cost(traced(b, plan.Options{Operators: plan.OperatorsNew}))-base)/floor)
		s.add("all/F", (cost(traced(b, plan.Options{Operators: plan.OperatorsAll}))-base)/floor)
		s.add("stacks/F", (cost(traced(b, plan.Options{Depth: plan.DefaultDepth}))-base)/floor)
		s.add("stacks+new/F", (cost(traced(b, plan.Options{Depth: plan.DefaultDepth, Operators: plan.OperatorsNew}))-base)/floor)
		s.add("stacks+all/F", (cost(traced(b, plan.Options{Depth: plan.DefaultDepth, Operators: plan.OperatorsAll}))-base)/floor)
	}
	for name := range s {
		b.ReportMetric(s.median(name), name)
	}
}

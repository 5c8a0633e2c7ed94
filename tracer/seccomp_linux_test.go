package tracer

import (
	"errors"
	"fmt"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
)

// Programs that may make only a few system calls, and are killed otherwise, are traced to
// the last call and end as without tracing. Where the kernel's return probes would
// violate the filter, they are refused with the reason, and continue.
func TestSeccomp(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "seccomp")
	for _, how := range []string{"probes", "others", "strict"} {
		for _, way := range ways(t) {
			t.Run(fmt.Sprintf("%s-%s", how, way.name), func(t *testing.T) { sandboxed(t, program, how, way.set) })
		}
	}
}

func sandboxed(t *testing.T, program, how string, change func(o *plan.Options)) {
	const calls = "200"
	alone := testutil.Spawn(t, program, how, calls)
	alone.Ready()
	alone.Go()
	want := alone.Report()

	child := testutil.Spawn(t, program, how, calls)
	child.Ready()
	o := plan.Options{PID: child.PID}
	change(&o)
	p, err := plan.New(o)
	needWay(t, &o, err)
	if errors.Is(err, host.ErrReturnProbes) {
		t.Logf("refused: %v", err)
		child.Go()
		child.Succeed()
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	r := attachTo(t, child.PID, change)
	child.Go()
	report := child.Report()
	records := r.end()
	r.whole()
	compare(t, records, report)
	if got := report.Functions["malloc"]; got != want.Functions["malloc"] || len(report.Calls) != len(want.Calls) {
		t.Errorf("traced it made %+v and logged %d calls, alone %+v and %d", got, len(report.Calls), want.Functions["malloc"], len(want.Calls))
	}
}

package tracer

import (
	"bytes"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// After an exec the library is at another address, which the tracer learns only later.
// Calls that the allocator makes to itself until then still count once. Here nothing
// reads events before the second program has ended.
func TestNestedCallsAfterExec(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		for name, change := range map[string]func(o *plan.Options){"best": nil, "oldest": oldest} {
			t.Run(name, func(t *testing.T) { nestedAfterExec(t, build, change) })
		}
	})
}

func nestedAfterExec(t *testing.T, build testutil.Builder, change func(o *plan.Options)) {
	child := testutil.Spawn(t, build(t, "exec"), "10", build(t, "aligned"), "5")
	child.Ready()
	o := plan.Options{PID: child.PID}
	if change != nil {
		change(&o)
	}
	p, err := plan.New(o)
	if err != nil {
		t.Fatal(err)
	}
	tracer, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	child.Go()
	child.Ready() // the second program
	child.Go()
	child.Succeed()
	r := &recording{t: t, tracer: tracer, done: make(chan error, 1)}
	r.done <- r.read()
	records := r.end()
	r.whole()
	_, second, _ := bytes.Cut(child.Output(), []byte("}\n"))
	report, err := testutil.ParseReport(second)
	if err != nil {
		t.Fatal(err)
	}
	for len(records) > 0 && records[0].Kind != trace.KindExec {
		records = records[1:]
	}
	compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
}

package tracer

import (
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/plan"
)

// Functions that lead to malloc by jumps through others count once, as themselves, and
// not as calls that never returned.
func TestAlignmentsOfMalloc(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		for name, change := range map[string]func(o *plan.Options){"best": nil, "oldest": oldest} {
			t.Run(name, func(t *testing.T) {
				_, report, records := traceRun(t, change, build(t, "aligned"), "3")
				compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
			})
		}
	})
}

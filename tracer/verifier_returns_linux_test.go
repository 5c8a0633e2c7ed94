package tracer

import (
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/plan"
)

// A copy of a stack has the address of the stub where a return probe of another tracer is
// pending. That is not a difference: the frames from there on are unknown.
func TestVerifierUnderForeignReturnProbes(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "shadow", testutil.OmitFramePointers)
	for _, way := range []plan.Unwind{plan.UnwindEH, plan.UnwindAuto} {
		t.Run(way.String(), func(t *testing.T) {
			child := testutil.Spawn(t, program, testutil.StackLogPath(t), "100")
			child.Ready()
			returnProbes(t, child.PID, program, "even", "odd", "run")
			var w warnings
			r := attachTo(t, child.PID, byTables(way, func(o *plan.Options) { o.VerifyUnwind, o.Warn = 1, w.write }))
			child.Go()
			child.Succeed()
			r.end()
			if s := r.tracer.Stats(); s.VerifyDiffers > 0 {
				t.Errorf("%d of %d stacks differ; the first is\n%s", s.VerifyDiffers, s.Verified, w.texts[0])
			}
		})
	}
}

package tracer

import (
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/plan"
)

// Code written to memory at run time has no tables: its frame pointers are used, and
// tables again below it.
func TestStacksThroughJIT(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "shadow", testutil.OmitFramePointers)
	t.Run("auto", func(t *testing.T) {
		tracedStacks(t, byTables(plan.UnwindAuto, nil), program, "2000", "jit").allShadowed(true)
	})
	t.Run("eh", func(t *testing.T) {
		tracedStacks(t, byTables(plan.UnwindEH, nil), program, "2000", "jit").allFailed(onlyCaller)
	})
}

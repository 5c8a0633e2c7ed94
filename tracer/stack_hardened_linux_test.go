package tracer

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/plan"
)

// Programs with hardened returns: on arm64 return addresses are signed if the processor
// signs, so that a word in the stack is an address only without its signature.
func TestStacksOfHardenedPrograms(t *testing.T) {
	testutil.NeedBPF(t)
	if cpu, err := os.ReadFile("/proc/cpuinfo"); runtime.GOARCH == "arm64" && err == nil {
		t.Logf("the processor signs: %v", strings.Contains(string(cpu), " paca"))
	}
	sweep := testutil.Sweep(t)
	for i, flags := range testutil.Hardened() {
		for j, p := range stackPrograms {
			if !sweep && (i+j)%len(stackPrograms) != 0 {
				continue // one program for each way to harden
			}
			t.Run(p.name+strings.Join(slices.Concat(p.flags, flags), ""), func(t *testing.T) {
				program := testutil.Build(t, p.name, slices.Concat([]string{testutil.OmitFramePointers}, p.flags, flags)...)
				r := tracedStacks(t, byTables(plan.UnwindEH, func(o *plan.Options) { o.VerifyUnwind = 3 }), program, "10", "2")
				r.exact(p.scope)
				if s := r.tracer.Stats(); s.VerifyDiffers != 0 {
					t.Errorf("%d of %d stacks differ", s.VerifyDiffers, s.Verified)
				}
			})
		}
		t.Run("frame-pointers"+flags[0], func(t *testing.T) {
			program := testutil.Build(t, "shadow", slices.Concat(flags, testutil.WithoutTables)...)
			r := tracedStacks(t, byTables(plan.UnwindAuto, nil), program, "200")
			r.allShadowed(true)
		})
	}
}

package tracer

import (
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// Two stacks that differ only in the word that ends them stay different, despite the
// stack cache: in one the word is zero, in the other a return address. The same holds for
// a stack that ends at the depth limit.
func TestStacksThatDifferAtTheirEnd(t *testing.T) {
	testutil.NeedBPF(t)
	const blocks = 1000
	for name, tt := range map[string]struct {
		depth  int
		second trace.StackEnd
		frames int
	}{
		"end":   {plan.DefaultDepth, trace.StackComplete, 3},
		"limit": {2, trace.StackTruncated, 2},
	} {
		t.Run(name, func(t *testing.T) {
			child := testutil.Spawn(t, testutil.Build(t, "fiber", testutil.OmitFramePointers), "1000")
			child.Ready()
			r := attachTo(t, child.PID, func(o *plan.Options) { o.Depth = tt.depth })
			child.Go()
			child.Succeed()
			n, wrong := 0, 0
			for _, rec := range ofKind(r.end(), trace.KindCall) {
				if rec.Call.Op != trace.OpAlloc {
					continue
				}
				end, frames := trace.StackComplete, 2
				if n >= blocks {
					end, frames = tt.second, tt.frames
				}
				if s := rec.Call.Stack; s.End != end || len(s.Frames) != frames {
					wrong++
				}
				n++
			}
			r.whole()
			if n != 2*blocks || wrong > 0 {
				t.Errorf("%d of %d stacks are wrong, %d were made", wrong, n, 2*blocks)
			}
		})
	}
}

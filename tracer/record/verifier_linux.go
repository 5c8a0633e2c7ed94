package record

import (
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/internal/unwind/reference"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/order"
)

// MaxDifferences is how many differences are logged; the others are only counted.
const MaxDifferences = 10

// verifier compares the stacks of the programs with those that the tracer unwinds from
// copies.
type verifier struct {
	copies           *copies
	log              func(format string, args ...any)
	checked, differs uint64
}

// check compares def, the programs' stack, with the stack of its copy.
func (v *verifier) check(raw *order.RawStack, def *order.StackDef) {
	want := v.copies.unwind(raw)
	agree, sure := Agreement(def, &want)
	if sure {
		v.checked++
	}
	if agree {
		return
	}
	v.differs++
	if v.differs <= MaxDifferences {
		v.log("%s", Difference(def, &want))
	}
}

// Agreement reports whether two stacks agree as far as both go, and whether the reference
// got far enough to be sure. A stack that the programs gave up is correct if it is the
// beginning of the reference.
func Agreement(got *order.StackDef, want *reference.Stack) (agree, sure bool) {
	n := min(len(got.Frames), len(want.Frames))
	if !slices.Equal(got.Frames[:n], want.Frames[:n]) {
		return false, true
	}
	whole := got.End == object.ProbeStackEndSTACK_COMPLETE || got.End == object.ProbeStackEndSTACK_TRUNCATED
	switch {
	case want.End == reference.Complete, want.End == reference.Truncated:
		return len(got.Frames) <= len(want.Frames) && (!whole || len(got.Frames) == len(want.Frames)), true
	case want.End == reference.Unreadable, want.End == reference.Unmapped:
		// The copy ends there, or a return probe's stub stands for the caller.
		return true, false
	}
	return true, !whole && len(got.Frames) <= len(want.Frames)
}

// Difference describes two stacks side by side.
func Difference(got *order.StackDef, want *reference.Stack) string {
	var b strings.Builder
	end, reason := stackEnd(got.End)
	fmt.Fprintf(&b, "stack differs: programs %s %s, reference %s", end, reason, want.End)
	for i := range max(len(got.Frames), len(want.Frames)) {
		fmt.Fprintf(&b, "\n  %2d  %-16s  %s", i, frameText(got.Frames, i), frameText(want.Frames, i))
	}
	return b.String()
}

func frameText(frames []uint64, i int) string {
	if i >= len(frames) {
		return "-"
	}
	return fmt.Sprintf("%#x", frames[i])
}

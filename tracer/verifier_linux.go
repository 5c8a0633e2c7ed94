package tracer

import (
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/internal/unwind/reference"
)

// maxDifferences is how many differences are described; the others are counted.
const maxDifferences = 10

// verifier compares what the programs made of stacks with what copies of them
// say.
type verifier struct {
	copies           *copies
	log              func(format string, args ...any)
	checked, differs uint64
}

// check compares what the programs made of a raw stack.
func (v *verifier) check(raw *rawStack, def *stackDef) {
	want := v.copies.unwind(raw)
	agree, sure := agreement(def, &want)
	if sure {
		v.checked++
	}
	if agree {
		return
	}
	v.differs++
	if v.differs <= maxDifferences {
		v.log("%s", difference(def, &want))
	}
}

// agreement says whether two outcomes agree as far as both go, and whether the
// reference got far enough to tell. Stacks that the programs gave up say so;
// they are right if they are the beginning of the true one.
func agreement(got *stackDef, want *reference.Stack) (agree, sure bool) {
	n := min(len(got.frames), len(want.Frames))
	if !slices.Equal(got.frames[:n], want.Frames[:n]) {
		return false, true
	}
	whole := got.end == probeStackEndSTACK_COMPLETE || got.end == probeStackEndSTACK_TRUNCATED
	switch {
	case want.End == reference.Complete, want.End == reference.Truncated:
		return len(got.frames) <= len(want.Frames) && (!whole || len(got.frames) == len(want.Frames)), true
	case want.End == reference.Unreadable, want.End == reference.Unmapped:
		// The copy ends there, or a return probe's stub stands for the caller.
		return true, false
	}
	return true, !whole && len(got.frames) <= len(want.Frames)
}

// difference describes two outcomes side by side.
func difference(got *stackDef, want *reference.Stack) string {
	var b strings.Builder
	end, reason := stackEnd(got.end)
	fmt.Fprintf(&b, "stack differs: programs %s %s, reference %s", end, reason, want.End)
	for i := range max(len(got.frames), len(want.Frames)) {
		fmt.Fprintf(&b, "\n  %2d  %-16s  %s", i, frameText(got.frames, i), frameText(want.Frames, i))
	}
	return b.String()
}

func frameText(frames []uint64, i int) string {
	if i >= len(frames) {
		return "-"
	}
	return fmt.Sprintf("%#x", frames[i])
}

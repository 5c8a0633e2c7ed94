package testutil

import (
	"fmt"
	"strings"
)

// StackDiff compares a stack of a trace with the one that the program logged for the same call.
// It returns "" if all return addresses are equal; of the first, sameCode compares only the
// function. Otherwise the text shows both stacks, frame by frame, with names from name.
func StackDiff(got, logged []uint64, sameCode func(a, b uint64) bool, name func(uint64) string) string {
	differs := func(i int) bool {
		switch {
		case i >= len(got) || i >= len(logged):
			return true
		case i == 0:
			return !sameCode(got[0], logged[0])
		}
		return got[i] != logged[i]
	}
	first := -1
	for i := range max(len(got), len(logged)) {
		if differs(i) {
			first = i
			break
		}
	}
	if first < 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "frame %d of %d differs (logged: %d frames)\n", first, len(got), len(logged))
	// Show two frames before the difference, and some after.
	for i := max(0, first-2); i < min(first+6, max(len(got), len(logged))); i++ {
		mark := " "
		if differs(i) {
			mark = "!"
		}
		fmt.Fprintf(&b, "%s %3d trace  %s\n      logged %s\n", mark, i, frameText(got, i, name), frameText(logged, i, name))
	}
	return b.String()
}

func frameText(frames []uint64, i int, name func(uint64) string) string {
	if i >= len(frames) {
		return "-"
	}
	return fmt.Sprintf("%#x %s", frames[i], name(frames[i]))
}

// Package reference unwinds stacks the slow and exact way: for each frame it
// executes the whole call frame information, with all registers and all
// expressions.
//
// It checks the unwinder in the kernel, so it shares nothing with that one's
// compact tables but the parsing of the sections (package cfi). [Unwind] takes
// the registers of the innermost frame, a [Memory] and the [Modules] of the
// process, live or as copied from it earlier ([Raw], [Layers], [Space]).
//
// Machines are amd64, arm64 and i386, all little-endian. What is computed with
// the words of the last wraps around at 32 bits. Input may be hostile: an
// expression is bounded in operations and stack, an unwind in frames, and
// nothing panics or allocates beyond the frames.
package reference

// Package reference unwinds stacks slowly and exactly: for each frame it executes the complete
// call frame information, with all registers and all expressions.
//
// It is used to check the unwinder in the kernel, so it shares only the parsing of the sections
// (package cfi) with that unwinder's compact tables. [Unwind] takes the registers of the
// innermost frame, a [Memory] and the [Modules] of the process. These may be live or copies
// from an earlier time ([Raw], [Layers], [Space]).
//
// It supports amd64, arm64 and i386, all little-endian. Sums of i386 words wrap around at 32
// bits. Input may be hostile: operations and stack of an expression are limited, as are the
// frames of an unwind, and nothing panics or allocates more than the frames need.
package reference

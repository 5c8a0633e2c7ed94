// Package original reads and counts like mptrace of mpatrol 1.5.1, including
// its errors, in the three builds that docs/formats/mtrc.md names. It was
// written from a description of the tool's behaviour and from its output.
//
// Where the original tool crashes, the error is a [Crash].
package original

import (
	"strconv"

	wire "rtrace-bpf/internal/wire/mtrc"
)

// Build is a build of the tool. Each build reads files of its own word size.
type Build struct {
	words int    // size of size_t in bytes
	ahead uint64 // bytes to buffer before a number is read
	wide  bool   // numbers are decoded in 64 bits instead of 32
	maxID byte   // highest id of a name
}

// The builds of the tool.
var (
	// AsIs64 is the 64-bit tool.
	AsIs64 = Build{words: 8, ahead: needed, maxID: wire.Names}
	// AsIs32 is the 32-bit tool.
	AsIs32 = Build{words: 4, ahead: needed, maxID: wire.Names}
	// Fixed64 is the 64-bit tool with larger buffers and 64-bit numbers.
	Fixed64 = Build{words: 8, ahead: 16, wide: true, maxID: wire.MaxID}
)

// Words returns the size of the build's words in bytes, 4 or 8.
func (b Build) Words() int { return b.words }

// mask truncates a number to the build's word size.
func (b Build) mask(v uint64) uint64 {
	if b.words == 4 {
		v &= 1<<32 - 1
	}
	return v
}

// Failure is the tool's message when it gives up.
type Failure string

// The failures of reading.
const (
	InvalidFormat Failure = "Invalid file format"
	ReadError     Failure = "Error reading file"
	TooNew        Failure = "Tracing file version too new"
	Overflow      Failure = "Buffer overflow"
)

func (f Failure) Error() string { return string(f) }

// Crash reports that the original tool crashes at a name with this id.
type Crash byte

func (c Crash) Error() string {
	return "name with id " + strconv.Itoa(int(c)) + ", at which the real mptrace crashes"
}

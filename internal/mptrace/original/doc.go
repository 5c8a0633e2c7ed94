// Package original reads and counts as mptrace of mpatrol 1.5.1 does, its
// errors included, in three builds that docs/formats/mtrc.md names. It was made
// from a description of the tool's behaviour and from its output.
//
// Where the real tool crashes, [Crash] is the error.
package original

import (
	"strconv"

	wire "rtrace-bpf/internal/wire/mtrc"
)

// Build is one of the builds of the tool. It reads files of its own word size.
type Build struct {
	words int    // bytes of size_t
	ahead uint64 // bytes that the buffer is filled up to before a number is read
	wide  bool   // numbers are put together in 64 bits instead of 32
	maxID byte   // of names
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

// mask cuts a number to the build's words.
func (b Build) mask(v uint64) uint64 {
	if b.words == 4 {
		v &= 1<<32 - 1
	}
	return v
}

// Failure is why the tool gives up. Its text is the tool's.
type Failure string

// The failures of reading.
const (
	InvalidFormat Failure = "Invalid file format"
	ReadError     Failure = "Error reading file"
	TooNew        Failure = "Tracing file version too new"
	Overflow      Failure = "Buffer overflow"
)

func (f Failure) Error() string { return string(f) }

// Crash says that the real tool crashes where it meets a name with this id.
type Crash byte

func (c Crash) Error() string {
	return "name with id " + strconv.Itoa(int(c)) + ", at which the real mptrace crashes"
}

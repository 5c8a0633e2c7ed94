// Package sprtrace contains the definitions that the reader, the writer, the
// dump and the format page of the sp-rtrace binary protocol share: its numbers
// and a table of its packets. See docs/formats/sprtrace.md.
package sprtrace

// Format is the name of the format in records and errors.
const Format = "sp-rtrace"

// Magic is the first byte of a handshake. No packet type starts with it.
const Magic = 0xF0

// Limits of the original programs. MaxPacket is the largest packet that every
// post-processor survives: it reads into a stack buffer of twice 4096 bytes,
// 4095 at a time, and larger packets overrun it.
const (
	MaxPacket    = 4096
	MaxFrames    = 253        // 256 less the three frames of the tracer itself
	MaxResources = 32         // ids 1 to 32: the reader has a table of 33
	DayMillis    = 86_400_000 // timestamps wrap here
)

// HeadSize is the length of a packet's type and size fields, in either order,
// in bytes.
const HeadSize = 8

// Types of calls on the wire.
const (
	CallUndefined = 0
	CallFree      = 1
	CallAlloc     = 2
)

// FlagRefCount in RESR marks a resource with reference counting: allocations
// and frees of the same id are counted.
const FlagRefCount = 1

// The options of two OCFG packets that only we write and that readers may
// ignore. The first follows directly after the handshake of a trace that has an
// End, the second is the End.
const (
	Ends = "rtrace-bpf: ends"
	End  = "rtrace-bpf: end"
)

// Version is a protocol version, major<<8 | minor.
type Version uint16

// The versions that differ on the wire. There was no 1.1.
const (
	V10 Version = 0x100
	V12 Version = 0x102 // adds the depth to PINF
	V13 Version = 0x103 // adds flags to RESR and names to ARGS
	V14 Version = 0x104 // adds FILE
	V20 Version = 0x200 // type before size, and size no longer counts the type
)

// Major returns the number before the dot.
func (v Version) Major() uint8 { return uint8(v >> 8) }

// Minor returns the number after the dot.
func (v Version) Minor() uint8 { return uint8(v) }

// SizeFirst reports whether real files of this version have [size][type].
func (v Version) SizeFirst() bool { return v < V20 }

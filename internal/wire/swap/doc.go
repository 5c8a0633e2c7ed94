// Package swap holds what the readers and writers of SWAP data messages (Samsung,
// Tizen) must agree on: message ids, the fields of each message, the letters of
// packed arguments, the numbers of functions, and the packets of the control
// channel. docs/formats/swap.md describes the format; where the protocol document
// and the public writers differ, it says which is followed.
package swap

// Format is the name of the format, and ControlFormat that of captured packets of
// its control channel.
const (
	Format        = "swap"
	ControlFormat = "swap-control"
)

const (
	// HeaderSize is the size of a message without its payload, in bytes.
	HeaderSize = 20
	// MaxPayload is the longest payload that we write; the kernel's writer has
	// the same limit.
	MaxPayload = 32768 - HeaderSize - 1
	// MaxMessage is the longest payload that readers take by default.
	MaxMessage = 16 << 20
	// MinSeconds is the least number that is taken for the seconds of a wall
	// clock, and the first that is no number of nanoseconds. The half of a
	// time that is not below it is the seconds.
	MinSeconds = 1_000_000_000
	// UnknownCaller is what writers send as the address of a caller that they do
	// not know.
	UnknownCaller = 0xBADBEEF
	// MaxGap is the longest gap of sequence numbers that is taken for lost
	// messages; one that is longer begins to count anew.
	MaxGap = 1<<31 - 1
)

// Protocol is the version of the protocol that is written, as the reply to VERSION
// gives it.
const Protocol = "4.1"

// LostPrefix begins the text of an ERROR of ours that says what a gap of the sequence
// in front of it is: "lost 5: ring full". GapReason is the reason of a loss that
// nothing but the gap tells of.
const (
	LostPrefix = "lost "
	GapReason  = "sequence gap"
)

// NoPath is what stands for the path of a program that was not found.
const NoPath = "N/A"

// Resource is the type of the resource whose calls are PROBE_MEMORY.
const Resource = "memory"

// ControlHeaderSize is the size of a packet of the control channel without its
// payload, in bytes.
const ControlHeaderSize = 8

// ReplyBit is what the id of a reply has more than that of its request.
const ReplyBit = 0x1000

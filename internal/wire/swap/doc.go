// Package swap contains the definitions that the readers and writers of SWAP
// data messages (Samsung, Tizen) share: message IDs, the fields of each
// message, the letters of packed arguments, the numbers of functions, and the
// packets of the control channel. docs/formats/swap.md describes the format;
// where the protocol document and the public writers differ, it states which
// one is followed.
package swap

// Format is the name of the format, and ControlFormat that of captured packets
// of its control channel.
const (
	Format        = "swap"
	ControlFormat = "swap-control"
)

const (
	// HeaderSize is the length of a message without its payload, in bytes.
	HeaderSize = 20
	// MaxPayload is the length of the longest payload that we write; the
	// kernel's writer has the same limit.
	MaxPayload = 32768 - HeaderSize - 1
	// MaxMessage is the length of the longest payload that readers accept by
	// default.
	MaxMessage = 16 << 20
	// MinSeconds is the smallest number that is taken for the seconds of a wall
	// clock, and the first that cannot be a number of nanoseconds. The half of
	// a time that is not below it is the seconds.
	MinSeconds = 1_000_000_000
	// UnknownCaller is the address that writers send for an unknown caller.
	UnknownCaller = 0xBADBEEF
	// MaxGap is the longest gap of sequence numbers that counts as lost
	// messages. After a longer one, counting restarts.
	MaxGap = 1<<31 - 1
)

// Protocol is the version of the protocol that we write, in the form of the
// reply to VERSION.
const Protocol = "4.1"

// LostPrefix is the beginning of the text of an ERROR, written by us, that
// explains the gap of the sequence before it: "lost 5: ring full". GapReason is
// the reason of a loss that only the gap shows.
const (
	LostPrefix = "lost "
	GapReason  = "sequence gap"
)

// NoPath replaces the path of a program that was not found.
const NoPath = "N/A"

// Resource is the resource type of the calls in PROBE_MEMORY.
const Resource = "memory"

// ControlHeaderSize is the length of a packet of the control channel without
// its payload, in bytes.
const ControlHeaderSize = 8

// ReplyBit is the difference between the ID of a reply and that of its request.
const ReplyBit = 0x1000

package swap

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/swap"
)

// looked is how many headers are looked at.
const looked = 3

// HeadSize is how many bytes Match wants to see of a stream, if there are as many.
const HeadSize = wire.HeaderSize

// MayBe says whether bytes at the beginning, which may be few, are an id, as both
// messages and packets of the control channel begin with: then Match wants to see
// more of them.
func MayBe(head []byte) bool {
	return len(head) >= 4 && head[2] == 0 && head[3] == 0 && (head[0]|head[1]) != 0
}

// Match says whether head is the beginning of a stream of messages. There is no
// magic: the first headers must be headers, each where the one before says, with
// times of a wall clock and numbers that are close. The first message must have a
// known id, or another must follow it, or the stream end with it; damage behind it
// is for the reader to tell.
func Match(head []byte) bool {
	if !MayBe(head) {
		return false
	}
	first := binary.LittleEndian.Uint32(head)
	known := wire.Lookup(first) != nil && first < wire.FirstPrivate
	if len(head) < wire.HeaderSize {
		return known && (len(head) < 12 || len(head) < 16 && binary.LittleEndian.Uint32(head[8:]) >= wire.MinSeconds)
	}
	number, rest := binary.LittleEndian.Uint32(head[4:]), head
	for n := range looked {
		if len(rest) < wire.HeaderSize {
			return n > 0 && (known || n > 1 || len(rest) == 0)
		}
		a, b := binary.LittleEndian.Uint32(rest[8:]), binary.LittleEndian.Uint32(rest[12:])
		if (a >= wire.MinSeconds) == (b >= wire.MinSeconds) || !MayBe(rest) {
			return n > 0 && known
		}
		next := binary.LittleEndian.Uint32(rest[4:])
		if gap := next - number; n > 0 && gap > wire.MaxGap {
			return known
		}
		number = next
		size := binary.LittleEndian.Uint32(rest[16:])
		if size > wire.MaxMessage {
			return known
		}
		if uint64(size) > uint64(len(rest)-wire.HeaderSize) {
			return known || n > 0
		}
		rest = rest[wire.HeaderSize+int(size):]
	}
	return true
}

// MatchControl says whether head is the beginning of captured packets of the control
// channel: the first headers are headers, with known ids. Match must have been asked
// before.
func MatchControl(head []byte) bool {
	for n := 0; ; n++ {
		if len(head) < wire.ControlHeaderSize || n == looked {
			return n > 0
		}
		def := wire.LookupControl(binary.LittleEndian.Uint32(head))
		size := binary.LittleEndian.Uint32(head[4:])
		if def == nil || size > wire.MaxMessage {
			return false
		}
		if uint64(size) > uint64(len(head)-wire.ControlHeaderSize) {
			return n > 0 || def.ID > wire.ReplyBit
		}
		head = head[wire.ControlHeaderSize+int(size):]
	}
}

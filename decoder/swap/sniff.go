package swap

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/swap"
)

// looked is how many headers are checked.
const looked = 3

// HeadSize is how many bytes of a stream Match needs, if the stream has that many.
const HeadSize = wire.HeaderSize

// MayBe reports whether head, which may be short, begins with an id as messages and
// packets of the control channel do. Then Match needs HeadSize bytes.
func MayBe(head []byte) bool {
	return len(head) >= 4 && head[2] == 0 && head[3] == 0 && (head[0]|head[1]) != 0
}

// Match reports whether head is the beginning of a stream of messages. There is no
// magic. Each of the first headers must be where the length in the one before it puts
// it, with a wall clock time and a sequence number close to the one before. The first
// message must have a known id, or another message or the end must follow it. Damage
// after that is left to the reader.
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

// MatchControl reports whether head is the beginning of captured packets of the control
// channel: the first headers have known ids. Call it only if Match is false.
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

package swap

import (
	"encoding/binary"

	"rtrace-bpf/internal/binio"
	wire "rtrace-bpf/internal/wire/swap"
)

// stream is the output: numbered messages.
type stream struct {
	out     binio.Output
	formula bool   // nanoseconds precede seconds
	at      int    // start of the message that is being written, in out.Buf
	seq     uint32 // of the next message
	gap     uint64 // how many numbers were skipped since the last message
	first   int64  // time of the first message, ns since 1970
	long    uint64 // texts and lists that were cut

	ends      bool // the trace has an End
	announced bool // its start was announced
}

// beginAt begins a message with a time in ns since 1970.
func (m *stream) beginAt(id uint32, wall int64) {
	if m.ends && !m.announced {
		m.announced = true
		m.beginAt(wire.End, wall)
		m.u32(0)
		m.end()
	}
	m.at = len(m.out.Buf)
	m.u32(id)
	m.u32(m.seq)
	m.seq++
	m.gap = 0
	if m.first == 0 {
		m.first = wall
	}
	m.time(wall)
	m.u32(0)
}

// end completes the message.
func (m *stream) end() {
	binary.LittleEndian.PutUint32(m.out.Buf[m.at+16:], uint32(len(m.out.Buf)-m.at-wire.HeaderSize))
}

func (m *stream) u32(v uint32) { m.out.Buf = binary.LittleEndian.AppendUint32(m.out.Buf, v) }
func (m *stream) u64(v uint64) { m.out.Buf = binary.LittleEndian.AppendUint64(m.out.Buf, v) }

// time appends a time in ns since 1970.
func (m *stream) time(wall int64) {
	if wall < 0 {
		wall = 0
	}
	seconds, nanos := uint32(wall/1e9), uint32(wall%1e9)
	if m.formula {
		seconds, nanos = nanos, seconds
	}
	m.u32(seconds)
	m.u32(nanos)
}

// text appends a string up to its first NUL, and no more than fits into the message.
func (m *stream) text(s string) {
	// The other fields of a message take less than this.
	const others = 256
	room := wire.MaxPayload - others - (len(m.out.Buf) - m.at - wire.HeaderSize)
	if len(s) > room {
		s = s[:max(room, 0)]
		m.long++
	}
	for i := range len(s) {
		if s[i] == 0 {
			s = s[:i]
			break
		}
	}
	m.out.Buf = append(append(m.out.Buf, s...), 0)
}

package nettrace

import "encoding/binary"

// maxText is the largest size of a string in bytes. Several of this size in UTF-16 fit
// into a block.
const maxText = 512 << 10

// payload is the payload of the event that is being made.
type payload struct {
	data []byte
	cut  uint64 // texts longer than maxText, of all events
}

// begin begins the payload of another event.
func (p *payload) begin() { p.data = p.data[:0] }

func (p *payload) text(s string) {
	if len(s) > maxText {
		s = s[:maxText]
		p.cut++
	}
	p.data = appendUTF16(p.data, s)
}

func (p *payload) u32(v uint32) { p.data = binary.LittleEndian.AppendUint32(p.data, v) }

func (p *payload) u64(v uint64) { p.data = binary.LittleEndian.AppendUint64(p.data, v) }

func (p *payload) i64(v int64) { p.u64(uint64(v)) }

func (p *payload) flag(v bool) {
	if v {
		p.u32(1)
	} else {
		p.u32(0)
	}
}

package swap

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// Message is a message that only KindOpaque can hold.
type Message interface {
	// messageID returns the number of the message.
	messageID() uint32
	// appendTo appends the payload, in the order of the message's fields.
	appendTo(b []byte) []byte
}

// Place makes r the record of a message and keeps its time. The payload is in buf, or
// in a larger slice if buf is too small. Place returns that slice for use with the next
// message, when r is no longer needed.
func Place(r *trace.Record, m Message, buf []byte) []byte {
	buf = m.appendTo(buf[:0])
	r.Kind = trace.KindOpaque
	r.Opaque = trace.Opaque{Format: wire.Format, ID: m.messageID(), Data: buf}
	return buf
}

// Where is the thread that a message is about.
type Where struct {
	PID, TID, CPU uint32
}

// appendThread appends the ids of process and thread.
func (w *Where) appendThread(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, w.PID)
	return binary.LittleEndian.AppendUint32(b, w.TID)
}

// Item is an argument or a result.
type Item struct {
	Letter byte   // one of wire.Letters, but no array
	Number uint64 // its bits
	Text   string // of letter s, without a NUL
}

func (i *Item) appendTo(b []byte) []byte {
	b = append(b, i.Letter)
	def := wire.LookupLetter(i.Letter)
	switch {
	case i.Letter == 's':
		return append(append(b, i.Text...), 0)
	case def.Size == 1:
		return append(b, byte(i.Number))
	case def.Size == 4:
		return binary.LittleEndian.AppendUint32(b, uint32(i.Number))
	case def.Size == 8:
		return binary.LittleEndian.AppendUint64(b, i.Number)
	}
	return b
}

func appendItems(b []byte, items []Item) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(items)))
	for i := range items {
		b = items[i].appendTo(b)
	}
	return b
}

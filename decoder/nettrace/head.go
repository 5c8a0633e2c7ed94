package nettrace

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/nettrace"
)

// head is a wire.Head with what only reading needs.
type head struct {
	wire.Head
	activity, related uint32 // of version 4: where they stand; 0 for none
}

// compressed reads a compressed head over that of the event before.
func (c *cursor) compressed(h *head, v6 bool) {
	flags := c.u8()
	if flags&wire.FlagMetadata != 0 {
		h.Metadata = c.uvarint32()
	}
	if flags&wire.FlagCapture != 0 {
		h.Sequence += c.uvarint32() + 1
		h.Capture = c.uvarint()
		h.Processor = c.uvarint32()
	} else if h.Metadata != 0 {
		h.Sequence++
	}
	if flags&wire.FlagThread != 0 {
		h.Thread = c.uvarint()
	}
	if flags&wire.FlagStack != 0 {
		h.Stack = c.uvarint32()
	}
	h.Time += c.uvarint()
	if flags&(wire.FlagActivity|wire.FlagRelated) != 0 {
		c.activities(h, flags, v6)
	}
	h.Sorted = flags&wire.FlagSorted != 0
	if flags&wire.FlagPayload != 0 {
		h.Size = c.uvarint32()
	}
}

func (c *cursor) activities(h *head, flags uint8, v6 bool) {
	if v6 {
		if flags&wire.FlagActivity != 0 {
			h.Labels = c.uvarint32()
		}
		return
	}
	if flags&wire.FlagActivity != 0 {
		h.activity = c.id()
	}
	if flags&wire.FlagRelated != 0 {
		h.related = c.id()
	}
}

// id reads past an id of 16 bytes and returns where it stands, 0 if it is zero.
func (c *cursor) id() uint32 {
	b := c.bytes(16)
	if b == nil || *(*[16]byte)(b) == [16]byte{} {
		return 0
	}
	return uint32(c.i - 16)
}

// plain reads a head that is not compressed and returns where the event ends:
// there may be bytes behind its payload.
func (c *cursor) plain(h *head, v6 bool) (end int) {
	size := wire.PlainV4
	if v6 {
		size = wire.PlainV6
	}
	total := int(c.u32())
	end = c.i + total
	if c.err == nil && (total < size || total > c.left()) {
		c.fail(malformed("event of %d bytes", total))
	}
	b := c.bytes(size)
	if b == nil {
		return 0
	}
	id := binary.LittleEndian.Uint32(b)
	h.Metadata, h.Sorted = id&^wire.Unsorted, id&wire.Unsorted == 0
	h.Sequence = binary.LittleEndian.Uint32(b[4:])
	h.Thread = binary.LittleEndian.Uint64(b[8:])
	h.Capture = binary.LittleEndian.Uint64(b[16:])
	h.Processor = binary.LittleEndian.Uint32(b[24:])
	h.Stack = binary.LittleEndian.Uint32(b[28:])
	h.Time = binary.LittleEndian.Uint64(b[32:])
	if v6 {
		h.Labels = binary.LittleEndian.Uint32(b[40:])
		h.Size = binary.LittleEndian.Uint32(b[44:])
	} else {
		ids := cursor{b: c.b, i: c.i - size + 40}
		h.activity, h.related = ids.id(), ids.id()
		h.Size = binary.LittleEndian.Uint32(b[72:])
	}
	if int64(h.Size) > int64(total-size) {
		c.i -= size
		c.fail(malformed("payload of %d bytes in an event of %d", h.Size, total))
	}
	return end
}

// events calls do for each event of a block, whose cursor is behind its payload
// then. A failure is at the place of the event.
func (c *cursor) events(v6 bool, do func(h *head, at, payload int) error) {
	start := c.i
	size, flags := int(c.u16()), c.u16()
	if c.err == nil && size < wire.HeaderSize {
		c.i = start
		c.fail(malformed("block header of %d bytes, less than %d", size, wire.HeaderSize))
	}
	c.bytes(size - 4)
	var h head
	for c.left() > 0 {
		at := c.i
		end := -1
		if flags&wire.FlagCompressed != 0 {
			c.compressed(&h, v6)
		} else {
			end = c.plain(&h, v6)
		}
		payload := c.i
		c.bytes(int(h.Size))
		if c.err == nil {
			c.err = do(&h, at, payload)
		}
		if end >= 0 && c.err == nil {
			c.i = end
		}
		if c.err != nil {
			c.i = at // that of a field tells less
		}
	}
}

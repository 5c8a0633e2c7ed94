package nettrace

import (
	"encoding/binary"

	"rtrace-bpf/internal/binio"
	wire "rtrace-bpf/internal/wire/nettrace"
)

// head is a wire.Head with fields that only reading needs.
type head struct {
	wire.Head
	activity, related uint32 // of version 4: their places; 0 if there are none
}

// quickHead is more bytes than a compressed header has, with a number of 8 bytes after
// it.
const quickHead = 128

// quick reads a compressed header like compressed, but only if no field needs a check
// for the end of the block. It returns false and reads nothing if that is not possible
// or the header is malformed.
func (c *cursor) quick(h *head, v6 bool) bool {
	if len(c.b)-c.i < quickHead {
		return false
	}
	b := c.b[c.i:]
	flags, i, bad := b[0], 1, false
	if v6 && flags&wire.FlagActivity != 0 || !v6 && flags&(wire.FlagActivity|wire.FlagRelated) != 0 {
		return false
	}
	var v uint64
	metadata, sequence, capture, processor := uint64(h.Metadata), h.Sequence, h.Capture, uint64(h.Processor)
	thread, stack, size := h.Thread, uint64(h.Stack), uint64(h.Size)
	if flags&wire.FlagMetadata != 0 {
		metadata, i = uleb(b, i, &bad)
	}
	if flags&wire.FlagCapture != 0 {
		v, i = uleb(b, i, &bad)
		capture, i = uleb(b, i, &bad)
		processor, i = uleb(b, i, &bad)
		sequence += uint32(v) + 1
	} else if metadata != 0 {
		sequence++
	}
	if flags&wire.FlagThread != 0 {
		thread, i = uleb(b, i, &bad)
	}
	if flags&wire.FlagStack != 0 {
		stack, i = uleb(b, i, &bad)
	}
	since, i := uleb(b, i, &bad)
	if flags&wire.FlagPayload != 0 {
		size, i = uleb(b, i, &bad)
	}
	if bad || (metadata|v|processor|stack|size)>>32 != 0 {
		return false
	}
	h.Metadata, h.Sequence, h.Capture, h.Processor = uint32(metadata), sequence, capture, uint32(processor)
	h.Thread, h.Stack, h.Size = thread, uint32(stack), uint32(size)
	h.Time += since
	h.Sorted = flags&wire.FlagSorted != 0
	c.i += i
	return true
}

// uleb reads a variable-length number at i, where there are enough bytes, and returns
// the index after it.
func uleb(b []byte, i int, bad *bool) (v uint64, next int) {
	if v := b[i]; v < 0x80 {
		return uint64(v), i + 1
	}
	return longUleb(b, i, bad)
}

func longUleb(b []byte, i int, bad *bool) (uint64, int) {
	v, n := binio.Uleb128(b[i:])
	if n <= 0 {
		*bad = true
		return 0, i
	}
	return v, i + n
}

// compressed reads a compressed header over that of the event before.
func (c *cursor) compressed(h *head, v6 bool) {
	if c.quick(h, v6) {
		return
	}
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

// plain reads an uncompressed header and returns the end of the event. There may be
// bytes after its payload.
func (c *cursor) plain(h *head, v6 bool) (end int) {
	size := wire.PlainV4
	if v6 {
		size = wire.PlainV6
	}
	total := int(c.u32())
	end = c.i + total
	if c.err == nil && (total < size || total > c.left()) {
		c.end = total >= size // the rest may be cut off
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

// eventsHead reads the header of a block of events, and returns whether their headers
// are compressed.
func (c *cursor) eventsHead() (compressed bool) {
	start := c.i
	size, flags := int(c.u16()), c.u16()
	if c.err == nil && size < wire.HeaderSize {
		c.i = start
		c.fail(malformed("block header of %d bytes, less than %d", size, wire.HeaderSize))
	}
	c.bytes(size - 4)
	return flags&wire.FlagCompressed != 0
}

// event reads an event, whose header may refer to that of the event before, and returns
// where its payload begins. It moves the cursor to the end of the event.
func (c *cursor) event(h *head, compressed, v6 bool) (payload int) {
	end := -1
	if compressed {
		c.compressed(h, v6)
	} else {
		end = c.plain(h, v6)
	}
	payload = c.i
	c.bytes(int(h.Size))
	if end >= 0 && c.err == nil {
		c.i = end
	}
	return payload
}

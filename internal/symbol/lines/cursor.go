package lines

import (
	"bytes"

	"rtrace-bpf/internal/binio"
)

// cursor reads fields from a section. After a read beyond the end, all reads return zero,
// and short is set. Callers check short once per entry or row.
type cursor struct {
	data  []byte // the section, up to the end of the part to read
	at    int    // offset in the section
	order binio.Order
	short bool
}

// left returns how many bytes follow.
func (c *cursor) left() int { return len(c.data) - c.at }

// fail makes all further reads fail.
func (c *cursor) fail() { c.short, c.at = true, len(c.data) }

// bytes reads n bytes, which remain part of the section.
func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(c.left()) {
		c.fail()
		return nil
	}
	b := c.data[c.at : c.at+int(n) : c.at+int(n)]
	c.at += int(n)
	return b
}

func (c *cursor) skip(n uint64) {
	if n > uint64(c.left()) {
		c.fail()
		return
	}
	c.at += int(n)
}

func (c *cursor) u8() uint8 {
	if c.at >= len(c.data) {
		c.fail()
		return 0
	}
	v := c.data[c.at]
	c.at++
	return v
}

// uint reads a number of 1, 2, 3, 4 or 8 bytes.
func (c *cursor) uint(size int) uint64 {
	b := c.bytes(uint64(size))
	if b == nil {
		return 0
	}
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(c.order.U16(b))
	case 4:
		return uint64(c.order.U32(b))
	case 8:
		return c.order.U64(b)
	}
	if c.order.Big {
		return uint64(b[0])<<16 | uint64(b[1])<<8 | uint64(b[2])
	}
	return uint64(b[2])<<16 | uint64(b[1])<<8 | uint64(b[0])
}

// uleb reads an unsigned LEB128 number.
func (c *cursor) uleb() uint64 {
	if c.at < len(c.data) && c.data[c.at] < 0x80 {
		c.at++
		return uint64(c.data[c.at-1])
	}
	v, n := binio.Uleb128(c.data[c.at:])
	if n <= 0 {
		c.fail()
		return 0
	}
	c.at += n
	return v
}

// sleb reads a signed LEB128 number of at most ten bytes.
func (c *cursor) sleb() int64 {
	v := int64(0)
	for shift := 0; shift < 7*binio.MaxUleb128; shift += 7 {
		x := c.u8()
		v |= int64(x&0x7f) << shift
		if x < 0x80 {
			if x&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
	c.fail()
	return 0
}

// text reads a string up to its NUL. The string remains part of the section.
func (c *cursor) text() []byte {
	n := bytes.IndexByte(c.data[c.at:], 0)
	if n < 0 {
		c.fail()
		return nil
	}
	b := c.data[c.at : c.at+n : c.at+n]
	c.at += n + 1
	return b
}

// length reads the length of a unit, and whether the unit's offsets have 64 bits.
func (c *cursor) length() (n uint64, wide bool) {
	n = c.uint(4)
	switch {
	case n == 0xffffffff:
		return c.uint(8), true
	case n >= 0xfffffff0: // reserved
		c.fail()
	}
	return n, false
}

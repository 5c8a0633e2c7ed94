package cfi

import "math/bits"

// cursor reads fields from a part of a section. A read beyond the end returns zero and sets
// short, which callers check once per entry or instruction.
type cursor struct {
	b     []byte // the section
	at    int
	end   int // end of the part
	big   bool
	short bool
}

// take returns the offset of the next n bytes.
func (c *cursor) take(n int) (int, bool) {
	if n < 0 || n > c.end-c.at {
		c.short, c.at = true, c.end
		return 0, false
	}
	at := c.at
	c.at += n
	return at, true
}

func (c *cursor) u8() uint8 {
	if c.at >= c.end {
		c.short = true
		return 0
	}
	v := c.b[c.at]
	c.at++
	return v
}

// uint reads an unsigned number of size bytes: 1, 2, 4 or 8.
func (c *cursor) uint(size int) uint64 {
	at, ok := c.take(size)
	if !ok {
		return 0
	}
	v := uint64(0)
	for i, x := range c.b[at : at+size] {
		if c.big {
			v = v<<8 | uint64(x)
		} else {
			v |= uint64(x) << (8 * i)
		}
	}
	return v
}

// int reads a signed number of size bytes.
func (c *cursor) int(size int) int64 {
	shift := 64 - 8*size
	return int64(c.uint(size)<<shift) >> shift
}

// uleb reads an unsigned LEB128 number. Bits beyond the 64th must be zero.
func (c *cursor) uleb() uint64 {
	v := uint64(c.u8())
	if v < 0x80 {
		return v
	}
	v &= 0x7f
	for shift := 7; ; shift += 7 {
		x := c.u8()
		part := uint64(x & 0x7f)
		if shift > 63 || shift == 63 && part > 1 {
			c.short = true
			return 0
		}
		v |= part << shift
		if x < 0x80 {
			return v
		}
	}
}

// sleb reads a signed LEB128 number of at most ten bytes.
func (c *cursor) sleb() int64 {
	v := int64(0)
	for shift := 0; shift < 70; shift += 7 {
		x := c.u8()
		v |= int64(x&0x7f) << shift
		if x < 0x80 {
			if x&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
	c.short = true
	return 0
}

// block reads n bytes, which remain part of the section.
func (c *cursor) block(n uint64) []byte {
	if bits.Len64(n) > 31 {
		c.short, c.at = true, c.end
		return nil
	}
	at, ok := c.take(int(n))
	if !ok {
		return nil
	}
	return c.b[at : at+int(n) : at+int(n)]
}

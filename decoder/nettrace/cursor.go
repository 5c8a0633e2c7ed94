package nettrace

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"

	"rtrace-bpf/internal/binio"
)

// cursor reads fields of a block. The first error sticks: everything read after it is
// zero.
type cursor struct {
	b   []byte
	i   int   // bytes read; the place of the error if there was one
	err error // the error at i
	end bool  // the error is that a field exceeds the end
}

// errShort is the error for a field that exceeds the end of what contains it.
var errShort = malformed("a field continues after its end")

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *cursor) short() {
	if c.err == nil {
		c.err, c.end = errShort, true
	}
}

// left returns how many bytes are left; 0 after an error.
func (c *cursor) left() int {
	if c.err != nil {
		return 0
	}
	return len(c.b) - c.i
}

func (c *cursor) bytes(n int) []byte {
	if c.err != nil {
		return nil
	}
	if n < 0 || n > len(c.b)-c.i {
		c.short()
		return nil
	}
	b := c.b[c.i : c.i+n : c.i+n]
	c.i += n
	return b
}

func (c *cursor) u8() uint8 {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// uvarint reads a variable-length number. The case of one byte is short enough to be
// inlined.
func (c *cursor) uvarint() uint64 {
	if c.err == nil && c.i < len(c.b) {
		if v := c.b[c.i]; v < 0x80 {
			c.i++
			return uint64(v)
		}
	}
	return c.longUvarint()
}

func (c *cursor) longUvarint() uint64 {
	if c.err != nil {
		return 0
	}
	v, n := binio.Uleb128(c.b[c.i:])
	if n <= 0 {
		if n < 0 {
			c.fail(malformed("number of more than 64 bits"))
		} else {
			c.short()
		}
		return 0
	}
	c.i += n
	return v
}

// uvarint32 reads a variable-length number of 32 bits.
func (c *cursor) uvarint32() uint32 {
	at := c.i
	v := c.uvarint()
	if v > 1<<32-1 {
		c.i = at
		c.fail(malformed("number of more than 32 bits"))
		return 0
	}
	return uint32(v)
}

// varint reads a variable-length number with its sign in the lowest bit.
func (c *cursor) varint() int64 {
	v := c.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// text8 reads a string: its length in bytes, and UTF-8.
func (c *cursor) text8() string {
	n := c.uvarint()
	if n > uint64(c.left()) {
		c.short()
		return ""
	}
	return string(c.bytes(int(n)))
}

// raw16 returns a string in UTF-16 without the NUL at its end.
func (c *cursor) raw16() []byte {
	if c.err != nil {
		return nil
	}
	for i := c.i; i+1 < len(c.b); i += 2 {
		if c.b[i] == 0 && c.b[i+1] == 0 {
			raw := c.b[c.i:i]
			c.i = i + 2
			return raw
		}
	}
	c.short()
	return nil
}

func (c *cursor) text16() string { return string(appendUTF16(nil, c.raw16())) }

// part returns a cursor of its own over the next n bytes; see within.
func (c *cursor) part(n int) cursor {
	b := c.bytes(n)
	return cursor{b: b, err: c.err}
}

// within takes over the error of a part that began at start.
func (c *cursor) within(part *cursor, start int) {
	if c.err == nil && part.err != nil {
		c.i, c.err = start+part.i, part.err
	}
}

// appendUTF16 appends UTF-16 as UTF-8. Unpaired surrogates become U+FFFD.
func appendUTF16(dst, src []byte) []byte {
	for i := 0; i+1 < len(src); i += 2 {
		u := rune(src[i]) | rune(src[i+1])<<8
		switch {
		case u < utf8.RuneSelf:
			dst = append(dst, byte(u))
		case utf16.IsSurrogate(u) && i+3 < len(src):
			r := utf16.DecodeRune(u, rune(src[i+2])|rune(src[i+3])<<8)
			if r != utf8.RuneError {
				i += 2
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = utf8.AppendRune(dst, u) // a surrogate becomes U+FFFD
		}
	}
	return dst
}

func (c *cursor) ownU8() *uint8 { v := c.u8(); return &v }

// ownID reads an id into memory that does not belong to the block.
func (c *cursor) ownID() *[16]byte {
	at := c.id()
	if at == 0 {
		return nil
	}
	own := [16]byte(c.b[at:])
	return &own
}

// pointer reads an address of the given size in bytes.
func (c *cursor) pointer(size int) uint64 {
	if size == 4 {
		return uint64(c.u32())
	}
	return c.u64()
}

// counted reads a string of universal events: a 16-bit length and UTF-8.
func (c *cursor) counted() string { return string(c.bytes(int(c.u16()))) }

// id skips an id of 16 bytes and returns its place, or 0 if the id is zero.
func (c *cursor) id() uint32 {
	b := c.bytes(16)
	if b == nil || *(*[16]byte)(b) == [16]byte{} {
		return 0
	}
	return uint32(c.i - 16)
}

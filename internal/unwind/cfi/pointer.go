package cfi

import (
	"fmt"

	"rtrace-bpf/trace"
)

// encoding says how a pointer is written: a format, what it counts from, and
// whether it is the address of the pointer (LSB 5.0, section 10.5.1).
type encoding uint8

const (
	formatMask  encoding = 0x0f
	formatULEB  encoding = 0x01
	formatSLEB  encoding = 0x09
	baseMask    encoding = 0x70
	baseAbs     encoding = 0x00
	basePC      encoding = 0x10
	baseText    encoding = 0x20
	baseData    encoding = 0x30
	baseAligned encoding = 0x50
	indirect    encoding = 0x80
	omitted     encoding = 0xff
)

// sizes of the formats with a fixed one, in bytes.
var sizes = [16]int{0x0: 8, 0x2: 2, 0x3: 4, 0x4: 8, 0x8: 8, 0xa: 2, 0xb: 4, 0xc: 8}

// check returns why addresses of code cannot be read in that encoding, if so.
func (e encoding) check() error {
	switch f := e & formatMask; {
	case e == omitted:
		return fmt.Errorf("omitted address: %w", trace.ErrMalformed)
	case e&indirect != 0:
		return fmt.Errorf("indirect address, encoding %#x: %w", uint8(e), trace.ErrUnsupported)
	case sizes[f] == 0 && f != formatULEB && f != formatSLEB:
		return fmt.Errorf("format of addresses, encoding %#x: %w", uint8(e), trace.ErrUnsupported)
	}
	switch e & baseMask {
	case baseAbs, basePC, baseText, baseData:
		return nil
	}
	return fmt.Errorf("base of addresses, encoding %#x: %w", uint8(e), trace.ErrUnsupported)
}

// value takes a number in the encoding's format.
func (c *cursor) value(e encoding) uint64 {
	f := e & formatMask
	switch {
	case f == formatULEB:
		return c.uleb()
	case f == formatSLEB:
		return uint64(c.sleb())
	case f > formatSLEB:
		return uint64(c.int(sizes[f]))
	}
	return c.uint(sizes[f])
}

// pointer takes an address. The encoding was checked.
func (s *Section) pointer(c *cursor, e encoding) uint64 {
	base := uint64(0)
	switch e & baseMask {
	case basePC:
		base = s.Addr + uint64(c.at)
	case baseText:
		base = s.TextBase
	case baseData:
		base = s.DataBase
	}
	return base + c.value(e)
}

// skip passes over a pointer whose value does not matter, in any encoding.
func (s *Section) skip(c *cursor, e encoding) error {
	switch f := e & formatMask; {
	case e == omitted:
	case e == baseAligned:
		c.take(int(-(s.Addr+uint64(c.at))&7) + 8)
	case sizes[f] == 0 && f != formatULEB && f != formatSLEB:
		return fmt.Errorf("format of a pointer, encoding %#x: %w", uint8(e), trace.ErrUnsupported)
	default:
		c.value(e)
	}
	return nil
}

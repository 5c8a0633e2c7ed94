package cfi

import (
	"fmt"

	"rtrace-bpf/trace"
)

// encoding is how a pointer is stored: its format, its base, and whether it points to the
// address (LSB 5.0, section 10.5.1).
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

// formatWord is an address of the machine's size; 0x08 means the same.
const formatWord encoding = 0x00

// sizes holds the sizes of fixed-size formats in bytes. For a word it holds the largest.
var sizes = [16]int{formatWord: 8, 0x2: 2, 0x3: 4, 0x4: 8, 0x8: 8, 0xa: 2, 0xb: 4, 0xc: 8}

// check returns an error if addresses of code cannot be read in that encoding.
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

// value reads a number in the encoding's format.
func (s *Section) value(c *cursor, e encoding) uint64 {
	f := e & formatMask
	size := sizes[f]
	switch {
	case f == formatULEB:
		return c.uleb()
	case f == formatSLEB:
		return uint64(c.sleb())
	case f&7 == formatWord:
		size = s.Machine.Word()
	}
	if f > formatSLEB {
		return uint64(c.int(size))
	}
	return c.uint(size)
}

// pointer reads an address. The encoding was checked.
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
	return s.Machine.Wrap(base + s.value(c, e))
}

// skip skips a pointer in any encoding.
func (s *Section) skip(c *cursor, e encoding) error {
	switch f := e & formatMask; {
	case e == omitted:
	case e == baseAligned:
		word := s.Machine.Word()
		c.take(int(-(s.Addr+uint64(c.at))&uint64(word-1)) + word)
	case sizes[f] == 0 && f != formatULEB && f != formatSLEB:
		return fmt.Errorf("format of a pointer, encoding %#x: %w", uint8(e), trace.ErrUnsupported)
	default:
		s.value(c, e)
	}
	return nil
}

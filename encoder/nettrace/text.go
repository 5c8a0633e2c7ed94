package nettrace

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"

	wire "rtrace-bpf/internal/wire/nettrace"
)

// escape is added to a byte that is not text to make the unit that stands for it.
const escape = wire.OwnEscape

// appendUTF16 appends a string and a NUL. A NUL within the string does not end it, and
// bytes that are not UTF-8 are kept: see wire.OwnEscape.
func appendUTF16(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf && c != 0 {
			dst = append(dst, c, 0)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == 0 || r == utf8.RuneError && n == 1:
			dst = binary.LittleEndian.AppendUint16(dst, escape+uint16(c))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = binary.LittleEndian.AppendUint16(dst, uint16(high))
			dst = binary.LittleEndian.AppendUint16(dst, uint16(low))
		default:
			dst = binary.LittleEndian.AppendUint16(dst, uint16(r))
		}
	}
	return append(dst, 0, 0)
}

// plain reports whether a string is UTF-8 without a NUL, which all readers show.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] == 0 {
			return false
		}
	}
	return utf8.ValidString(s)
}

// appendEscaped appends a text to a list of texts.
func appendEscaped(dst []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; c {
		case '\\':
			dst = append(dst, `\\`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// maxText is the largest size of a string in bytes. Several of this size in UTF-16 fit
// into a block.
const maxText = 512 << 10

// Parts of payloads.

func (e *Writer) text(s string) {
	if len(s) > maxText {
		s = s[:maxText]
		e.stats.CutStrings++
	}
	e.payload = appendUTF16(e.payload, s)
}

func (e *Writer) u32(v uint32) { e.payload = binary.LittleEndian.AppendUint32(e.payload, v) }

func (e *Writer) u64(v uint64) { e.payload = binary.LittleEndian.AppendUint64(e.payload, v) }

func (e *Writer) i64(v int64) { e.u64(uint64(v)) }

func (e *Writer) flag(v bool) {
	if v {
		e.u32(1)
	} else {
		e.u32(0)
	}
}

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

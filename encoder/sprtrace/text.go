package sprtrace

import (
	"strings"
	"unicode/utf8"

	wire "rtrace-bpf/internal/wire/sprtrace"
)

// maxName limits strings that are not the last in their packet, in bytes.
const maxName = 255

// text appends at most limit bytes of s, up to its first NUL, where a reader ends the
// string.
func (e *Writer) text(s string, limit int) {
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
		e.stats.CutStrings++
	}
	if len(s) > limit {
		s = cut(s, limit)
		e.stats.CutStrings++
	}
	size := wire.TextSize(uint16(len(s)))
	length := size - 2
	if e.opts.Dialect == Document {
		length = len(s)
	}
	e.buf = e.order.AppendU16(e.buf, uint16(length))
	e.buf = append(e.buf, s...)
	e.buf = append(e.buf, "\x00\x00\x00"[:size-2-len(s)]...)
}

// cut returns at most limit bytes of s and does not split a character.
func cut(s string, limit int) string {
	for i := limit; i > limit-utf8.UTFMax && i > 0; i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i]
		}
	}
	return s[:limit]
}

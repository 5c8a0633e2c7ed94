package sprtrace

import (
	"bytes"

	"rtrace-bpf/internal/binio"
	wire "rtrace-bpf/internal/wire/sprtrace"
)

// TextForm is the form of a string in a packet.
type TextForm uint8

// The forms of a string. Its length distinguishes them. Real writers count the padding,
// so that length + 2 is always a multiple of 4. Any other length is that of the text
// alone, as the protocol document specifies, and the padding follows it. With a length
// that allows both, the string ends at the same place in either form.
const (
	TextPadded TextForm = iota // length with padding
	TextExact                  // length of the text, padding after it
	TextNull                   // length 0: no string at all
)

// Text is a string from a packet.
type Text struct {
	Bytes []byte // up to the first NUL
	Form  TextForm
}

// legacyTextSize is the size that the original reader computes.
func legacyTextSize(length uint16) int {
	if length == 0 {
		return 4
	}
	return 2 + int(length)
}

// splitText returns the string at the start of b and how many bytes it takes. The
// padding at the very end of a packet may be missing. ok is false if the string is
// longer than b.
func splitText(b []byte, order binio.Order, legacy bool) (text []byte, n int, ok bool) {
	if len(b) < 2 {
		return nil, 0, false
	}
	length := order.U16(b)
	if int(length) > len(b)-2 {
		return nil, 0, false
	}
	n = wire.TextSize(length)
	if legacy {
		n = legacyTextSize(length)
	}
	n = min(n, len(b))
	text = b[2 : 2+int(length)]
	if i := bytes.IndexByte(text, 0); i >= 0 {
		text = text[:i]
	}
	return text, n, true
}

// textForm returns the form of the string at the start of b.
func textForm(b []byte, order binio.Order) TextForm {
	switch length := order.U16(b); {
	case length == 0:
		return TextNull
	case (length+2)%4 == 0:
		return TextPadded
	default:
		return TextExact
	}
}

// appendText appends t in its form.
func appendText(dst []byte, order binio.Order, t Text) []byte {
	start := len(dst)
	length := len(t.Bytes)
	if t.Form == TextPadded {
		// At least one NUL if the text is empty: length 0 means TextNull.
		length = max(wire.TextSize(uint16(length))-2, 2)
	}
	dst = order.AppendU16(dst, uint16(length))
	dst = append(dst, t.Bytes...)
	for (len(dst)-start)%4 != 0 || len(dst)-start < 2+length {
		dst = append(dst, 0)
	}
	return dst
}

// internSlots is how many strings an interner keeps.
const internSlots = 256

// internMax is the length of the longest string that it keeps.
const internMax = 256

// interner makes strings from bytes. It does not allocate for strings that it has seen
// recently.
type interner struct {
	slots [internSlots]string
}

func (t *interner) get(b []byte) string {
	n := uint(len(b))
	if n == 0 {
		return ""
	}
	if n > internMax {
		return string(b)
	}
	h := n + uint(b[0])*7 + uint(b[n-1])*13 + uint(b[n/2])*29 + uint(b[n/4])*53
	s := &t.slots[h%internSlots]
	if *s != string(b) {
		*s = string(b)
	}
	return *s
}

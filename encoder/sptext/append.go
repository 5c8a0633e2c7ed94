package sptext

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
)

const hexDigits = "0123456789abcdef"

// appendHex appends v in hexadecimal, with at least one digit.
func appendHex(b []byte, v uint64) []byte {
	const digits = 16
	b = slices.Grow(b, digits)
	to := b[len(b) : len(b)+digits]
	n := (bits.Len64(v|1) + 3) / 4
	low := hexWord(uint32(v))
	if n <= 8 {
		binary.BigEndian.PutUint64(to, low<<(8*uint(8-n)))
	} else {
		binary.BigEndian.PutUint64(to, hexWord(uint32(v>>32))<<(8*uint(digits-n)))
		binary.BigEndian.PutUint64(to[n-8:], low)
	}
	return b[:len(b)+n]
}

// hexWord returns the eight digits of v, the first one in the highest byte.
func hexWord(v uint32) uint64 {
	x := uint64(v)
	x = (x<<16 | x) & 0x0000ffff0000ffff
	x = (x<<8 | x) & 0x00ff00ff00ff00ff
	x = (x<<4 | x) & 0x0f0f0f0f0f0f0f0f
	const ones = 0x0101010101010101
	letters := (x + 6*ones) >> 4 & ones // 1 where the digit is a letter
	return x + '0'*ones + letters*('a'-'9'-1)
}

// appendUint appends v in decimal. It makes eight digits at a time: the halves of a
// word hold the upper and the lower four digits, the quarters hold pairs of digits, and
// the bytes digits, with the first one in the lowest byte. A division by 100 is a
// multiplication by 10486 and a shift by 20, which is right below 43699; a division by
// 10 uses 103 and 10, which is right below 179.
func appendUint(b []byte, v uint64) []byte {
	const digits = 8
	if v >= 1e8 {
		return strconv.AppendUint(b, v, 10)
	}
	u := uint32(v)
	fours := uint64(u/1e4) | uint64(u%1e4)<<32
	hundreds := fours * 10486 >> 20 & 0x0000007f_0000007f
	pairs := hundreds | (fours-100*hundreds)<<16
	tens := pairs * 103 >> 10 & 0x000f000f_000f000f
	each := tens | (pairs-10*tens)<<8
	zeros := bits.TrailingZeros64(each|1<<(8*(digits-1))) / 8 // at the start; the last digit stays
	b = slices.Grow(b, digits)
	binary.LittleEndian.PutUint64(b[len(b):len(b)+digits], (each|'0'*0x0101010101010101)>>(8*uint(zeros)))
	return b[:len(b)+digits-zeros]
}

func appendInt(b []byte, v int64) []byte { return strconv.AppendInt(b, v, 10) }

// appendPadded appends at least two digits.
func appendPadded(b []byte, v uint64) []byte {
	if v < 100 {
		return append(b, '0'+byte(v/10), '0'+byte(v%10))
	}
	return appendUint(b, v)
}

// place is where a text is, and so which of its bytes would end it there.
type place uint8

const (
	inLine   place = 1 << iota // up to the end of the line
	inWord                     // up to white space
	inHeader                   // up to a comma
	inParens                   // up to ')'
	inAngles                   // a word between '<' and '>', before a '('
)

// unsafeIn holds, for each byte, the places where it is quoted.
var unsafeIn = func() (t [256]place) {
	for c := range 256 {
		if c < ' ' || c == 0x7f {
			t[c] = inLine | inWord | inHeader | inParens | inAngles
		}
	}
	t[' '] |= inWord | inAngles
	t[','] |= inHeader
	t[')'] |= inParens
	t['<'] |= inAngles
	t['>'] |= inAngles
	t['('] |= inAngles
	return t
}()

// quote appends s with every byte that cannot be at this place as \xNN. The original
// tools treat that as part of the text. A backslash that would begin such a group is
// quoted itself.
func (w *Writer) quote(b []byte, s string, at place) []byte {
	if w.opts.Legacy {
		return append(b, s...)
	}
	start := 0
	for i := range len(s) {
		if unsafeIn[s[i]]&at == 0 && (s[i] != '\\' || !startsGroup(s[i:])) {
			continue
		}
		b = append(b, s[start:i]...)
		b = appendQuoted(b, s[i])
		start = i + 1
	}
	return append(b, s[start:]...)
}

func appendQuoted(b []byte, c byte) []byte {
	return append(b, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
}

// startsGroup reports whether s begins with what a reader takes for a quoted byte.
func startsGroup(s string) bool {
	return len(s) >= 4 && s[1] == 'x' && isHex(s[2]) && isHex(s[3])
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
}

// functionText is the text of the function and the resource of a call.
type functionText struct {
	name     string
	resource uint32
	text     []byte // empty if it must be made again
}

// function appends a function's name and its resource type, if that is printed. Both
// are mostly those of the call before.
func (w *Writer) function(b []byte, name string, resource uint32) []byte {
	l := &w.last
	if name != l.name || resource != l.resource || len(l.text) == 0 {
		l.name, l.resource = name, resource
		l.text = w.appendFunction(l.text[:0], name, w.resources.text(resource))
	}
	return append(b, l.text...)
}

// appendFunction appends a name. It may contain spaces and parentheses, but must not
// begin like a context or a time, nor end like a type.
func (w *Writer) appendFunction(b []byte, name string, typ []byte) []byte {
	if w.opts.Legacy || name == "" {
		return append(append(b, name...), typ...)
	}
	if c := name[0]; c == '@' || c == '[' {
		b = appendQuoted(b, c)
		name = name[1:]
	}
	if n := len(name); n > 0 && name[n-1] == '>' && typ == nil {
		return appendQuoted(w.quote(b, name[:n-1], inLine), '>')
	}
	return append(w.quote(b, name, inLine), typ...)
}

package sptext

import (
	"math/bits"
	"slices"
	"strconv"
)

const hexDigits = "0123456789abcdef"

// hexPairs are the two digits of each byte.
var hexPairs = func() (t [256][2]byte) {
	for i := range t {
		t[i] = [2]byte{hexDigits[i>>4], hexDigits[i&15]}
	}
	return t
}()

func appendHex(b []byte, v uint64) []byte {
	n := (bits.Len64(v|1) + 3) / 4
	i := len(b) + n
	b = slices.Grow(b, n)[:i]
	for ; n >= 2; n -= 2 {
		i -= 2
		pair := &hexPairs[v&0xff]
		b[i], b[i+1] = pair[0], pair[1]
		v >>= 8
	}
	if n > 0 {
		b[i-1] = hexDigits[v]
	}
	return b
}

func appendUint(b []byte, v uint64) []byte { return strconv.AppendUint(b, v, 10) }

func appendInt(b []byte, v int64) []byte { return strconv.AppendInt(b, v, 10) }

// appendPadded writes at least two digits.
func appendPadded(b []byte, v uint64) []byte {
	if v < 100 {
		return append(b, '0'+byte(v/10), '0'+byte(v%10))
	}
	return appendUint(b, v)
}

// place says where a text stands and so which of its bytes would end it there.
type place uint8

const (
	inLine   place = 1 << iota // up to the end of the line
	inWord                     // up to white space
	inHeader                   // up to a comma
	inParens                   // up to ')'
	inAngles                   // a word between '<' and '>', before a '('
)

// unsafeIn holds for each byte the places where it is quoted.
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

// quote writes s with every byte that cannot stand at this place as \xNN. The
// tools of old take that for part of the text. A backslash is itself quoted
// where it would start such a group.
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

// startsGroup says whether s begins with what a reader takes for a quoted byte.
func startsGroup(s string) bool {
	return len(s) >= 4 && s[1] == 'x' && isHex(s[2]) && isHex(s[3])
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
}

// function writes a function's name and the resource type behind it, if there
// is one to print. Both are mostly those of the call before.
func (w *Writer) function(b []byte, name string, resource uint32) []byte {
	if name != w.name || resource != w.resource || len(w.nameText) == 0 {
		w.name, w.resource = name, resource
		w.nameText = w.appendFunction(w.nameText[:0], name, w.resourceText(resource))
	}
	return append(b, w.nameText...)
}

// appendFunction writes a name that may hold spaces and parentheses, but must not
// start like a context or a time, nor end like a type.
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

package jsontext

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Errors that callers may distinguish.
var (
	ErrEnd   = errors.New("line ends inside a value")
	ErrDepth = errors.New("values are nested too deep")
)

// maxNesting bounds the depth of values that are skipped.
const maxNesting = 64

// Cursor reads one line of JSON. Its error is sticky: after the first error
// every method returns zero, and loops over [Cursor.More] end. The methods that
// read a value expect one of their type and move past it.
type Cursor struct {
	b       []byte
	i       int
	strict  bool
	first   bool // no member or element of the innermost open value was read
	err     error
	at      int // offset of err
	scratch []byte
	texts   texts
}

// NewCursor returns a cursor over an empty line. A strict cursor rejects text
// that is not UTF-8.
func NewCursor(strict bool) *Cursor { return &Cursor{strict: strict} }

// Reset moves the cursor to the start of line and clears the error.
func (p *Cursor) Reset(line []byte) {
	p.b, p.i = line, 0
	p.err, p.at = nil, 0
}

// Err returns the first error.
func (p *Cursor) Err() error { return p.err }

// Offset returns the position of the cursor in the line, or of the first error.
func (p *Cursor) Offset() int {
	if p.err != nil {
		return p.at
	}
	return p.i
}

// Seek moves the cursor back to an Offset of the same line.
func (p *Cursor) Seek(offset int) {
	if p.err == nil {
		p.i = offset
	}
}

// Fail sets the error, at the given offset, unless there is one already.
func (p *Cursor) Fail(offset int, err error) {
	if p.err == nil {
		p.i = offset
		p.fail(err)
	}
}

func (p *Cursor) fail(err error) {
	if p.err == nil {
		p.err, p.at = err, p.i
		if err == ErrEnd {
			p.at = len(p.b)
		}
	}
	p.i = len(p.b)
}

func (p *Cursor) failf(format string, args ...any) {
	if p.err == nil {
		p.fail(fmt.Errorf(format, args...))
	}
}

// Peek returns the next byte that is not white space, or 0 at the end.
func (p *Cursor) Peek() byte {
	for p.i < len(p.b) {
		switch c := p.b[p.i]; c {
		case ' ', '\t', '\r', '\n':
			p.i++
		case 0:
			p.failf("unexpected byte 0")
			return 0
		default:
			return c
		}
	}
	return 0
}

// Blank reports whether nothing but white space is left.
func (p *Cursor) Blank() bool { return p.Peek() == 0 && p.err == nil }

// expect steps over c.
func (p *Cursor) expect(c byte) {
	switch got := p.Peek(); got {
	case c:
		p.i++
	case 0:
		p.fail(ErrEnd)
	default:
		p.failf("%q instead of %q", got, c)
	}
}

// End checks that nothing but white space is left.
func (p *Cursor) End() {
	if c := p.Peek(); c != 0 {
		p.failf("%q after the object", c)
	}
}

// Open moves into an object or array that begins with c.
func (p *Cursor) Open(c byte) {
	p.expect(c)
	p.first = true
}

// More reports whether the object or array that ends with c has another part,
// and moves past the comma before that part or past c.
func (p *Cursor) More(c byte) bool {
	got := p.Peek()
	if p.err != nil {
		return false
	}
	first := p.first
	p.first = false
	switch {
	case got == c:
		p.i++
		return false
	case first:
		return true
	case got == ',':
		p.i++
		return true
	case got == 0:
		p.fail(ErrEnd)
	default:
		p.failf("%q instead of ',' or %q", got, c)
	}
	return false
}

// Key reads the key of the next member and the colon after it. The result is
// valid until the next text is read.
func (p *Cursor) Key() []byte {
	k := p.Text()
	p.expect(':')
	return k
}

// Text reads a string. The result is valid until the next text is read.
func (p *Cursor) Text() []byte {
	p.expect('"')
	start := p.i
	high := false
	for ; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; {
		case c == '"':
			s := p.b[start:p.i]
			if high && p.strict && !utf8.Valid(s) {
				p.failf("text is not UTF-8")
				return nil
			}
			p.i++
			return s
		case c == '\\':
			return p.escaped(start)
		case c < 0x20:
			p.control()
			return nil
		case c >= utf8.RuneSelf:
			high = true
		}
	}
	p.fail(ErrEnd)
	return nil
}

// control fails at a control character inside a string.
func (p *Cursor) control() {
	p.failf("control character %#02x in a string", p.b[p.i])
}

// escaped reads the rest of the string that began at start. The cursor is at
// its first backslash.
func (p *Cursor) escaped(start int) []byte {
	s := append(p.scratch[:0], p.b[start:p.i]...)
	raw := p.i // raw text since the last escape, checked in strict mode
	if p.strict && !utf8.Valid(s) {
		p.failf("text is not UTF-8")
		return nil
	}
	for p.i < len(p.b) {
		c := p.b[p.i]
		switch {
		case c == '"' || c == '\\':
			if p.strict && !utf8.Valid(p.b[raw:p.i]) {
				p.failf("text is not UTF-8")
				return nil
			}
			p.i++
			if c == '"' {
				p.scratch = s
				return s
			}
			s = p.escape(s)
			raw = p.i
		case c < 0x20:
			p.control()
			return nil
		default:
			s = append(s, c)
			p.i++
		}
	}
	p.fail(ErrEnd)
	return nil
}

// escape appends the text of the escape after a backslash.
func (p *Cursor) escape(s []byte) []byte {
	if p.i >= len(p.b) {
		p.fail(ErrEnd)
		return s
	}
	c := p.b[p.i]
	p.i++
	switch c {
	case '"', '\\', '/':
		return append(s, c)
	case 'b':
		return append(s, '\b')
	case 'f':
		return append(s, '\f')
	case 'n':
		return append(s, '\n')
	case 'r':
		return append(s, '\r')
	case 't':
		return append(s, '\t')
	case 'u':
		return p.unicode(s)
	}
	p.failf("escape \\%c", c)
	return s
}

// unicode appends the character of a \u escape. The cursor is after the u.
func (p *Cursor) unicode(s []byte) []byte {
	r := p.hex4()
	switch {
	case r < 0xd800 || r > 0xdfff:
		return utf8.AppendRune(s, r)
	case r >= invalidByte+0x80 && r <= invalidByte+0xff:
		return append(s, byte(r-invalidByte))
	case p.err != nil:
		return s
	case r < 0xdc00 && len(p.b)-p.i < 2:
		p.fail(ErrEnd)
		return s
	case r < 0xdc00 && p.b[p.i] == '\\' && p.b[p.i+1] == 'u':
		p.i += 2
		if low := p.hex4(); low >= 0xdc00 && low <= 0xdfff {
			return utf8.AppendRune(s, (r-0xd800)<<10+(low-0xdc00)+0x10000)
		}
	}
	p.failf("escape of half a character")
	return s
}

func (p *Cursor) hex4() rune {
	if len(p.b)-p.i < 4 {
		p.fail(ErrEnd)
		return 0
	}
	var r rune
	for range 4 {
		d, ok := hexDigit(p.b[p.i])
		if !ok {
			p.failf("%q in an escape", p.b[p.i])
			return 0
		}
		r = r<<4 | rune(d)
		p.i++
	}
	return r
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// Skip skips a value of any type.
func (p *Cursor) Skip() {
	var closers [maxNesting]byte
	depth := 0
	for p.err == nil {
		switch c := p.Peek(); c {
		case '{', '[':
			if depth == maxNesting {
				p.fail(ErrDepth)
				return
			}
			closers[depth] = c + 2 // '{'+2 == '}', '['+2 == ']'
			depth++
			p.Open(c)
		case '"':
			p.Text()
		default:
			p.scalar()
		}
		for depth > 0 && p.err == nil && !p.More(closers[depth-1]) {
			depth--
		}
		if depth == 0 {
			return
		}
		if p.err == nil && closers[depth-1] == '}' {
			p.Key()
		}
	}
}

// scalar skips a number, true, false or null.
func (p *Cursor) scalar() {
	start := p.i
	for p.i < len(p.b) && isWord(p.b[p.i]) {
		p.i++
	}
	switch word := p.b[start:p.i]; {
	case string(word) == "true", string(word) == "false", string(word) == "null", isNumber(word):
	case p.i == len(p.b):
		p.fail(ErrEnd)
	default:
		p.i = start
		p.failf("not a value")
	}
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'E'
}

// isNumber reports whether w is a valid JSON number.
func isNumber(w []byte) bool {
	digits := func() bool {
		n := 0
		for n < len(w) && w[n] >= '0' && w[n] <= '9' {
			n++
		}
		w = w[n:]
		return n > 0
	}
	if len(w) > 0 && w[0] == '-' {
		w = w[1:]
	}
	if len(w) > 1 && w[0] == '0' && w[1] >= '0' && w[1] <= '9' || !digits() {
		return false
	}
	if len(w) > 0 && w[0] == '.' {
		if w = w[1:]; !digits() {
			return false
		}
	}
	if len(w) > 0 && (w[0] == 'e' || w[0] == 'E') {
		w = w[1:]
		if len(w) > 0 && (w[0] == '+' || w[0] == '-') {
			w = w[1:]
		}
		if !digits() {
			return false
		}
	}
	return len(w) == 0
}

package jsonl

import (
	"errors"
	"fmt"
	"unicode/utf8"

	wire "rtrace-bpf/internal/wire/jsonl"
	"rtrace-bpf/trace"
)

// errEnd says that the line stops inside a value.
var errEnd = errors.New("line ends inside a value")

// maxNesting bounds the depth of values that are skipped.
const maxNesting = 64

// parser is a cursor over one line with a sticky error. Its methods expect a
// value of their type and step behind it.
type parser struct {
	b       []byte
	i       int
	strict  bool
	first   bool // no member or element of the innermost open value was read
	err     error
	at      int // where err was met
	scratch []byte
	texts   texts

	// What a record's slices point to, reused from record to record.
	frameBuf []uint64
	nameBuf  []string
	argBuf   []trace.Arg
	dataBuf  []byte
}

func (p *parser) reset(line []byte) {
	p.b, p.i = line, 0
	p.err, p.at = nil, 0
}

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err, p.at = err, p.i
		if err == errEnd {
			p.at = len(p.b)
		}
	}
	p.i = len(p.b)
}

func (p *parser) failf(format string, args ...any) {
	if p.err == nil {
		p.fail(fmt.Errorf(format, args...))
	}
}

// peek returns the next byte that is not white space, or 0 at the end.
func (p *parser) peek() byte {
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

func (p *parser) blank() bool { return p.peek() == 0 && p.err == nil }

// expect steps over c.
func (p *parser) expect(c byte) {
	switch got := p.peek(); got {
	case c:
		p.i++
	case 0:
		p.fail(errEnd)
	default:
		p.failf("%q instead of %q", got, c)
	}
}

// end checks that nothing but white space is left.
func (p *parser) end() {
	if c := p.peek(); c != 0 {
		p.failf("%q after the object", c)
	}
}

func (p *parser) open(c byte) {
	p.expect(c)
	p.first = true
}

// more reports whether the object or array that closes with c has another
// part, and steps over the comma before it or over c.
func (p *parser) more(c byte) bool {
	got := p.peek()
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
		p.fail(errEnd)
	default:
		p.failf("%q instead of ',' or %q", got, c)
	}
	return false
}

// key reads the key of the next member and the colon behind it. The result is
// valid until the next text is read.
func (p *parser) key() []byte {
	k := p.text()
	p.expect(':')
	return k
}

// text reads a string. The result is valid until the next text is read.
func (p *parser) text() []byte {
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
	p.fail(errEnd)
	return nil
}

// control fails at a control character inside a string.
func (p *parser) control() {
	p.failf("control character %#02x in a string", p.b[p.i])
}

// escaped reads the rest of the string that began at start and has its first
// backslash here.
func (p *parser) escaped(start int) []byte {
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
	p.fail(errEnd)
	return nil
}

// escape appends what the escape after a backslash stands for.
func (p *parser) escape(s []byte) []byte {
	if p.i >= len(p.b) {
		p.fail(errEnd)
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

// unicode appends what \uXXXX stands for; p is behind the u.
func (p *parser) unicode(s []byte) []byte {
	r := p.hex4()
	switch {
	case r < 0xd800 || r > 0xdfff:
		return utf8.AppendRune(s, r)
	case r >= wire.InvalidByte+0x80 && r <= wire.InvalidByte+0xff:
		return append(s, byte(r-wire.InvalidByte))
	case p.err != nil:
		return s
	case r < 0xdc00 && len(p.b)-p.i < 2:
		p.fail(errEnd)
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

func (p *parser) hex4() rune {
	if len(p.b)-p.i < 4 {
		p.fail(errEnd)
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

// skip steps over a value of any type.
func (p *parser) skip() {
	var closers [maxNesting]byte
	depth := 0
	for p.err == nil {
		switch c := p.peek(); c {
		case '{', '[':
			if depth == maxNesting {
				p.fail(fmt.Errorf("values nested deeper than %d: %w", maxNesting, trace.ErrLimit))
				return
			}
			closers[depth] = c + 2 // '{'+2 == '}', '['+2 == ']'
			depth++
			p.open(c)
		case '"':
			p.text()
		default:
			p.scalar()
		}
		for depth > 0 && p.err == nil && !p.more(closers[depth-1]) {
			depth--
		}
		if depth == 0 {
			return
		}
		if p.err == nil && closers[depth-1] == '}' {
			p.key()
		}
	}
}

// scalar steps over a number, true, false or null.
func (p *parser) scalar() {
	start := p.i
	for p.i < len(p.b) && isWord(p.b[p.i]) {
		p.i++
	}
	switch word := p.b[start:p.i]; {
	case string(word) == "true", string(word) == "false", string(word) == "null", isNumber(word):
	case p.i == len(p.b):
		p.fail(errEnd)
	default:
		p.i = start
		p.failf("not a value")
	}
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'E'
}

// isNumber reports whether w is a number as JSON spells it.
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

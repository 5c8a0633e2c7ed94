package jsontext

import (
	"math"
	"strconv"
)

// integer reads digits with an optional sign into magnitude and sign.
func (p *Cursor) integer() (v uint64, negative bool) {
	if p.Peek() == '-' {
		negative = true
		p.i++
	}
	start := p.i
	for ; p.i < len(p.b) && p.b[p.i] >= '0' && p.b[p.i] <= '9'; p.i++ {
		d := uint64(p.b[p.i] - '0')
		if v > (math.MaxUint64-d)/10 {
			p.failf("number out of range")
			return 0, false
		}
		v = v*10 + d
	}
	switch {
	case p.err != nil:
	case p.i == len(p.b) && p.i == start:
		p.fail(ErrEnd)
	case p.i == start:
		p.failf("%q instead of an integer", p.b[p.i])
	case p.b[start] == '0' && p.i > start+1:
		p.failf("integer with a leading zero")
	case p.i < len(p.b) && isWord(p.b[p.i]):
		p.failf("not an integer")
	}
	return v, negative
}

// Uint reads an integer from 0 to limit.
func (p *Cursor) Uint(limit uint64) uint64 {
	v, negative := p.integer()
	if v > limit || negative && v != 0 {
		p.failf("number out of range")
		return 0
	}
	return v
}

// Int reads an integer from -limit-1 to limit.
func (p *Cursor) Int(limit uint64) int64 {
	v, negative := p.integer()
	if negative && v <= limit+1 {
		return -int64(v)
	}
	if negative || v > limit {
		p.failf("number out of range")
		return 0
	}
	return int64(v)
}

// Address reads a string "0x…", or a plain integer.
func (p *Cursor) Address() uint64 {
	if p.Peek() != '"' {
		return p.Uint(math.MaxUint64)
	}
	at := p.i
	s := p.Text()
	if p.err != nil {
		return 0
	}
	if len(s) < 3 || len(s) > 2+16 || s[0] != '0' || s[1] != 'x' {
		p.i = at
		p.failf("not an address")
		return 0
	}
	var v uint64
	for _, c := range s[2:] {
		d, ok := hexDigit(c)
		if !ok {
			p.i = at
			p.failf("not an address")
			return 0
		}
		v = v<<4 | uint64(d)
	}
	return v
}

// Bool reads true or false.
func (p *Cursor) Bool() bool {
	p.Peek()
	start := p.i
	p.scalar()
	if p.err != nil {
		return false
	}
	switch string(p.b[start:p.i]) {
	case "true":
		return true
	case "false":
	default:
		p.i = start
		p.failf("neither true nor false")
	}
	return false
}

// String reads a string. Short strings that repeat cost no memory.
func (p *Cursor) String() string { return p.texts.keep(p.Text()) }

// Enum reads a name that parse knows, or a number for a value without a name.
func (p *Cursor) Enum(parse func([]byte) (uint8, bool)) uint8 {
	if p.Peek() != '"' {
		return uint8(p.Uint(math.MaxUint8))
	}
	at := p.i
	s := p.Text()
	if p.err != nil {
		return 0
	}
	v, ok := parse(s)
	if !ok {
		p.i = at
		p.failf("unknown name %s", strconv.Quote(string(s)))
	}
	return v
}

// AppendHex reads a string of hexadecimal digits, two per byte, and appends
// the bytes to b.
func (p *Cursor) AppendHex(b []byte) []byte {
	p.Peek()
	at := p.i
	s := p.Text()
	if len(s)%2 != 0 {
		p.i = at
		p.failf("odd number of hexadecimal digits")
		return b
	}
	for i := 0; i < len(s); i += 2 {
		hi, ok1 := hexDigit(s[i])
		lo, ok2 := hexDigit(s[i+1])
		if !ok1 || !ok2 {
			p.i = at
			p.failf("not hexadecimal")
			return b
		}
		b = append(b, hi<<4|lo)
	}
	return b
}

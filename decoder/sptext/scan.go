package sptext

import "math"

// scanner parses a line with the rules of scanf, which are those of the format: white
// space, a sign and (in base 16) "0x" may precede numbers, and numbers that overflow
// become the largest value.
type scanner struct {
	s []byte
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// spaces skips white space, if any.
func (p *scanner) spaces() {
	for len(p.s) > 0 && isSpace(p.s[0]) {
		p.s = p.s[1:]
	}
}

// byte skips one given byte.
func (p *scanner) byte(c byte) bool {
	if len(p.s) == 0 || p.s[0] != c {
		return false
	}
	p.s = p.s[1:]
	return true
}

// text skips a given text.
func (p *scanner) text(t string) bool {
	if len(p.s) < len(t) || string(p.s[:len(t)]) != t {
		return false
	}
	p.s = p.s[len(t):]
	return true
}

// address reads "0x" and a hexadecimal number.
func (p *scanner) address() (uint64, bool) {
	if len(p.s) < 3 || p.s[0] != '0' || p.s[1] != 'x' {
		return 0, false
	}
	// The common case first: only digits.
	var v uint64
	i := 2
	for ; i < len(p.s) && i < 2+16; i++ {
		d := hexValue[p.s[i]]
		if d > 15 {
			break
		}
		v = v<<4 | uint64(d)
	}
	if i > 3 && (i == len(p.s) || hexValue[p.s[i]] > 15) {
		p.s = p.s[i:]
		return v, true
	}
	rest := scanner{p.s[2:]}
	v, ok := rest.hex()
	if ok {
		p.s = rest.s
	}
	return v, ok
}

// hex reads a hexadecimal number.
func (p *scanner) hex() (uint64, bool) {
	q := *p
	q.spaces()
	negative := q.sign()
	if len(q.s) > 2 && q.s[0] == '0' && (q.s[1] == 'x' || q.s[1] == 'X') && hexValue[q.s[2]] < 16 {
		q.s = q.s[2:]
	}
	var v uint64
	i, over := 0, false
	for ; i < len(q.s); i++ {
		d := hexValue[q.s[i]]
		if d > 15 {
			break
		}
		over = over || v>>60 != 0
		v = v<<4 | uint64(d)
	}
	if i == 0 {
		return 0, false
	}
	p.s = q.s[i:]
	switch {
	case over:
		return math.MaxUint64, true
	case negative:
		return -v, true
	}
	return v, true
}

// decimal reads a decimal number: its absolute value, and whether it is negative.
func (p *scanner) decimal() (v uint64, negative, ok bool) {
	q := *p
	q.spaces()
	negative = q.sign()
	i, over := 0, false
	for ; i < len(q.s) && q.s[i] >= '0' && q.s[i] <= '9'; i++ {
		d := uint64(q.s[i] - '0')
		over = over || v > (math.MaxUint64-d)/10
		v = v*10 + d
	}
	if i == 0 {
		return 0, false, false
	}
	if over {
		v = math.MaxUint64
	}
	p.s = q.s[i:]
	return v, negative, true
}

// int32 reads a decimal number as the original stores it: 64 bits with a sign, then cut
// to 32.
func (p *scanner) int32() (int32, bool) {
	v, negative, ok := p.decimal()
	if negative {
		return int32(uint32(-min(v, 1<<63))), ok
	}
	return int32(uint32(min(v, math.MaxInt64))), ok
}

func (p *scanner) sign() (negative bool) {
	if len(p.s) > 0 && (p.s[0] == '-' || p.s[0] == '+') {
		negative = p.s[0] == '-'
		p.s = p.s[1:]
	}
	return negative
}

// word skips white space and returns the bytes up to the next white space. It returns
// false if there are none.
func (p *scanner) word() ([]byte, bool) {
	p.spaces()
	i := 0
	for i < len(p.s) && !isSpace(p.s[i]) {
		i++
	}
	w := p.s[:i]
	p.s = p.s[i:]
	return w, i > 0
}

// until returns the bytes before c or the end of the line. It returns false if there
// are none.
func (p *scanner) until(c byte) ([]byte, bool) {
	i := 0
	for i < len(p.s) && p.s[i] != c {
		i++
	}
	w := p.s[:i]
	p.s = p.s[i:]
	return w, i > 0
}

// hexValue holds the value of each hexadecimal digit, and 255 for any other byte.
var hexValue = func() (t [256]uint8) {
	for i := range t {
		t[i] = 255
	}
	for i := range 10 {
		t['0'+i] = uint8(i)
	}
	for i := range 6 {
		t['a'+i] = uint8(10 + i)
		t['A'+i] = uint8(10 + i)
	}
	return t
}()

package jsonl

import (
	"math"
	"strconv"

	"rtrace-bpf/trace"
)

// integer reads digits with an optional sign into magnitude and sign.
func (p *parser) integer() (v uint64, negative bool) {
	if p.peek() == '-' {
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
		p.fail(errEnd)
	case p.i == start:
		p.failf("%q instead of an integer", p.b[p.i])
	case p.b[start] == '0' && p.i > start+1:
		p.failf("integer with a leading zero")
	case p.i < len(p.b) && isWord(p.b[p.i]):
		p.failf("not an integer")
	}
	return v, negative
}

func (p *parser) uint(limit uint64) uint64 {
	v, negative := p.integer()
	if v > limit || negative && v != 0 {
		p.failf("number out of range")
		return 0
	}
	return v
}

func (p *parser) uint64(v *uint64) { *v = p.uint(math.MaxUint64) }
func (p *parser) uint32(v *uint32) { *v = uint32(p.uint(math.MaxUint32)) }
func (p *parser) uint16(v *uint16) { *v = uint16(p.uint(math.MaxUint16)) }

func (p *parser) int(limit uint64) int64 {
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

func (p *parser) int64(v *int64) { *v = p.int(math.MaxInt64) }
func (p *parser) int32(v *int32) { *v = int32(p.int(math.MaxInt32)) }

// small reads an int; it is held to 32 bits so that traces mean the same on
// every machine that reads them.
func (p *parser) small(v *int) { *v = int(p.int(math.MaxInt32)) }

// address reads a string "0x…"; a plain integer is taken, too.
func (p *parser) address() uint64 {
	if p.peek() != '"' {
		return p.uint(math.MaxUint64)
	}
	at := p.i
	s := p.text()
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

func (p *parser) addr(v *uint64) { *v = p.address() }

func (p *parser) bool(v *bool) {
	p.peek()
	start := p.i
	p.scalar()
	if p.err != nil {
		return
	}
	switch string(p.b[start:p.i]) {
	case "true":
		*v = true
	case "false":
		*v = false
	default:
		p.i = start
		p.failf("neither true nor false")
	}
}

func (p *parser) string(v *string) { *v = p.texts.keep(p.text()) }

// enum reads a name, or the number of a value that has none.
func (p *parser) enum(parse func([]byte) (uint8, bool)) uint8 {
	if p.peek() != '"' {
		return uint8(p.uint(math.MaxUint8))
	}
	at := p.i
	s := p.text()
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

// bytes reads a string of hexadecimal digits.
func (p *parser) bytes() []byte {
	p.peek()
	at := p.i
	s := p.text()
	out := p.dataBuf[:0]
	if len(s)%2 != 0 {
		p.i = at
		p.failf("odd number of hexadecimal digits")
		return nil
	}
	for i := 0; i < len(s); i += 2 {
		hi, ok1 := hexDigit(s[i])
		lo, ok2 := hexDigit(s[i+1])
		if !ok1 || !ok2 {
			p.i = at
			p.failf("not hexadecimal")
			return nil
		}
		out = append(out, hi<<4|lo)
	}
	p.dataBuf = out
	return out
}

func (p *parser) frames() []uint64 {
	out := p.frameBuf[:0]
	for p.open('['); p.more(']'); {
		out = append(out, p.address())
	}
	p.frameBuf = out
	return out
}

func (p *parser) names() []string {
	out := p.nameBuf[:0]
	for p.open('['); p.more(']'); {
		out = append(out, p.texts.keep(p.text()))
	}
	p.nameBuf = out
	return out
}

func (p *parser) args() []trace.Arg {
	out := p.argBuf[:0]
	for p.open('['); p.more(']'); {
		var a trace.Arg
		for p.open('{'); p.more('}'); {
			switch key := p.key(); string(key) {
			case "name":
				p.string(&a.Name)
			case "value":
				p.string(&a.Value)
			default:
				p.unknown(key)
			}
		}
		out = append(out, a)
	}
	p.argBuf = out
	return out
}

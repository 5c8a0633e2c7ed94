package jsonrecord

import (
	"fmt"
	"math"
	"strconv"

	"rtrace-bpf/internal/jsontext"
	"rtrace-bpf/trace"
)

// Parser parses records, one in each line. Reset gives it the next line.
type Parser struct {
	*jsontext.Cursor
	strict bool

	// The memory of a record's slices, reused for each record.
	frameBuf []uint64
	nameBuf  []string
	argBuf   []trace.Arg
	dataBuf  []byte
}

// NewParser returns a parser. A strict one accepts neither unknown members nor text
// that is not UTF-8.
func NewParser(strict bool) *Parser {
	return &Parser{Cursor: jsontext.NewCursor(strict), strict: strict}
}

func (p *Parser) failf(at int, format string, args ...any) {
	if p.Err() == nil {
		p.Fail(at, fmt.Errorf(format, args...))
	}
}

// Unknown skips a member that this version does not have, or sets an error if the
// parser is strict.
func (p *Parser) Unknown(key []byte) {
	if p.strict {
		p.failf(p.Offset(), "unknown key %s", strconv.Quote(string(key)))
		return
	}
	p.Skip()
}

func (p *Parser) uint64(v *uint64) { *v = p.Uint(math.MaxUint64) }
func (p *Parser) uint32(v *uint32) { *v = uint32(p.Uint(math.MaxUint32)) }
func (p *Parser) uint16(v *uint16) { *v = uint16(p.Uint(math.MaxUint16)) }
func (p *Parser) int64(v *int64)   { *v = p.Int(math.MaxInt64) }
func (p *Parser) int32(v *int32)   { *v = int32(p.Int(math.MaxInt32)) }

// small reads an int. It is limited to 32 bits so that traces mean the same on every
// machine that reads them.
func (p *Parser) small(v *int) { *v = int(p.Int(math.MaxInt32)) }

func (p *Parser) addr(v *uint64)   { *v = p.Address() }
func (p *Parser) bool(v *bool)     { *v = p.Bool() }
func (p *Parser) string(v *string) { *v = p.String() }

// bytes reads a string of hexadecimal digits.
func (p *Parser) bytes() []byte {
	p.dataBuf = p.AppendHex(p.dataBuf[:0])
	return p.dataBuf
}

func (p *Parser) frames() []uint64 {
	out := p.frameBuf[:0]
	for p.Open('['); p.More(']'); {
		out = append(out, p.Address())
	}
	p.frameBuf = out
	return out
}

func (p *Parser) names() []string {
	out := p.nameBuf[:0]
	for p.Open('['); p.More(']'); {
		out = append(out, p.String())
	}
	p.nameBuf = out
	return out
}

func (p *Parser) args() []trace.Arg {
	out := p.argBuf[:0]
	for p.Open('['); p.More(']'); {
		var a trace.Arg
		for p.Open('{'); p.More('}'); {
			switch key := p.Key(); string(key) {
			case "name":
				p.string(&a.Name)
			case "value":
				p.string(&a.Value)
			default:
				p.Unknown(key)
			}
		}
		out = append(out, a)
	}
	p.argBuf = out
	return out
}

package swap

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"

	wire "rtrace-bpf/internal/wire/swap"
)

// The words of values.
const (
	wordCut  = "cut"   // before a string that has no NUL
	wordBits = "bits:" // before the bits of a float that is not a number
)

// appendFields appends " name=value" for each of the fields, which values begin with,
// and returns the other values.
func appendFields(b []byte, fields []wire.Field, values []Value, tail string, common int) ([]byte, []Value) {
	for i := range fields {
		if len(values) == 0 || values[0].Field != &fields[i] {
			continue // the field is absent: it depends on another
		}
		b = append(b, ' ')
		if tail != "" && i >= common {
			b = append(append(b, tail...), '.')
		}
		b = append(append(b, fields[i].Name...), '=')
		b, values = appendValueText(b, values)
	}
	return b, values
}

// appendValueText appends the first value as text, with the values that belong to it,
// and returns the others.
func appendValueText(b []byte, values []Value) ([]byte, []Value) {
	v, rest := &values[0], values[1:]
	if v.Letter != 0 {
		return appendItemText(b, v), rest
	}
	switch v.Field.Type {
	case wire.U8, wire.U32, wire.U64:
		b = strconv.AppendUint(b, v.Num, 10)
	case wire.I32, wire.I64:
		b = strconv.AppendInt(b, int64(v.Num), 10)
	case wire.Hex32, wire.Pointer:
		b = appendHex(b, v.Num)
	case wire.Float:
		b = appendFloat(b, v.Num, 32)
	case wire.Double:
		b = appendFloat(b, v.Num, 64)
	case wire.IPv4:
		for i := range 4 {
			if i > 0 {
				b = append(b, '.')
			}
			b = strconv.AppendUint(b, v.Num>>(8*i)&0xff, 10)
		}
	case wire.Time:
		b = appendClock(b, uint32(v.Num), v.Nanos)
	case wire.String:
		b = appendQuoted(b, v)
	case wire.Sized, wire.Rest:
		b = hex.AppendEncode(b, v.Text)
	case wire.Items:
		b = append(b, '[')
		for i := range v.Num {
			if i > 0 {
				b = append(b, ' ')
			}
			b, rest = appendValueText(b, rest)
		}
		b = append(b, ']')
	case wire.List:
		b, rest = appendListText(b, v, rest)
	}
	return b, rest
}

func appendListText(b []byte, v *Value, rest []Value) ([]byte, []Value) {
	elements := v.Field.Elements
	b = append(b, '[')
	for i := range v.Num {
		if i > 0 {
			b = append(b, ' ')
		}
		if elements[0].Name == "" {
			b, rest = appendValueText(b, rest)
			continue
		}
		b = append(b, '{')
		start := len(b)
		b, rest = appendFields(b, elements, rest, "", 0)
		b = append(b[:start], b[start+1:]...) // remove the space before the first element
		b = append(b, '}')
	}
	return append(b, ']'), rest
}

func appendItemText(b []byte, v *Value) []byte {
	b = append(b, v.Letter)
	switch v.Letter {
	case 'v', 'n':
		return b
	}
	b = append(b, ':')
	switch v.Letter {
	case 'b', 'c':
		b = strconv.AppendUint(b, v.Num, 10)
	case 'd', 'x':
		b = strconv.AppendInt(b, int64(v.Num), 10)
	case 'p':
		b = appendHex(b, v.Num)
	case 'f':
		b = appendFloat(b, v.Num, 32)
	case 'w':
		b = appendFloat(b, v.Num, 64)
	case 's':
		b = appendQuoted(b, v)
	default:
		b = append(appendHex(b, v.Num), '[')
		for i := range v.elements() {
			if i > 0 {
				b = append(b, ' ')
			}
			switch num := v.element(i); v.Letter {
			case 'D':
				b = strconv.AppendInt(b, int64(int32(num)), 10)
			case 'F':
				b = appendFloat(b, num, 32)
			default:
				b = appendFloat(b, num, 64)
			}
		}
		b = append(b, ']')
	}
	return b
}

// elements returns the number of elements of an array.
func (v *Value) elements() int { return len(v.Text) / wire.LookupLetter(v.Letter).Size }

// element returns the bits of an element of an array.
func (v *Value) element(i int) uint64 {
	if v.Letter == 'W' {
		return binary.LittleEndian.Uint64(v.Text[8*i:])
	}
	return uint64(binary.LittleEndian.Uint32(v.Text[4*i:]))
}

func appendHex(b []byte, num uint64) []byte {
	return strconv.AppendUint(append(b, "0x"...), num, 16)
}

func appendFloat(b []byte, num uint64, bits int) []byte {
	f := math.Float64frombits(num)
	if bits == 32 {
		f = float64(math.Float32frombits(uint32(num)))
	}
	if math.IsNaN(f) {
		return appendHex(append(b, wordBits...), num)
	}
	return strconv.AppendFloat(b, f, 'g', -1, bits)
}

// appendClock appends a time as SECONDS.NANOSECONDS, with nine digits of nanoseconds,
// or ten if they are 10^9 or more.
func appendClock(b []byte, seconds, nanos uint32) []byte {
	b = append(strconv.AppendUint(b, uint64(seconds), 10), '.')
	return appendRight(b, strconv.FormatUint(uint64(nanos), 10), 9, '0')
}

func appendQuoted(b []byte, v *Value) []byte {
	if v.Cut {
		b = append(b, wordCut...)
	}
	return strconv.AppendQuoteToASCII(b, string(v.Text))
}

func appendRight(b []byte, s string, width int, pad byte) []byte {
	for range width - len(s) {
		b = append(b, pad)
	}
	return append(b, s...)
}

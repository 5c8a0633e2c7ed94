package nettrace

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// Limits of the text of a payload. Types without a size, in a fixed number, would make
// a text of any length from nothing.
const (
	maxText   = 1 << 20 // bytes
	maxValues = 1 << 20
)

// errText is the error for a payload whose text becomes too long.
var errText = tooMuch("payload with more than %d values or %d bytes of text", maxValues, maxText)

// formatter converts the values of a payload to text.
type formatter struct {
	c      cursor // at the value
	whole  []byte // the whole payload
	text   []byte
	ends   []int // ends of the values of fields in text
	values int

	texts interned // of what occurs repeatedly
}

// AppendArgs appends the fields of an event as texts to args. If the payload does not
// match its description, it returns the fields before the mismatch and an error.
func AppendArgs(args []trace.Arg, fields []wire.Field, payload []byte) ([]trace.Arg, error) {
	var f formatter
	return f.args(args, fields, payload)
}

func (f *formatter) args(args []trace.Arg, fields []wire.Field, payload []byte) ([]trace.Arg, error) {
	f.c, f.whole = cursor{b: payload}, payload
	f.text, f.ends, f.values = f.text[:0], f.ends[:0], 0
	for i := range fields {
		if f.value(&fields[i], 0); f.c.err != nil {
			break
		}
		f.ends = append(f.ends, len(f.text))
	}
	text, from := string(f.text), 0
	for i, end := range f.ends {
		args = append(args, trace.Arg{Name: fields[i].Name, Value: text[from:end]})
		from = end
	}
	if f.c.err != nil {
		return args, fmt.Errorf("field %q: %w", fields[len(f.ends)].Name, f.c.err)
	}
	return args, nil
}

// value appends the text of the value at the cursor.
func (f *formatter) value(t *wire.Field, depth int) {
	if f.values++; f.values > maxValues || len(f.text) > maxText || depth > 2*maxDepth {
		f.c.fail(errText)
	}
	if f.c.err != nil {
		return
	}
	switch t.Type {
	case wire.TypeString:
		f.text = appendUTF16(f.text, f.c.raw16())
	case wire.TypeVarInt:
		f.text = strconv.AppendInt(f.text, f.c.varint(), 10)
	case wire.TypeVarUInt:
		f.text = strconv.AppendUint(f.text, f.c.uvarint(), 10)
	case wire.TypeArray:
		f.list(t.Element, int(f.c.u16()), depth)
	case wire.TypeFixedArray:
		f.list(t.Element, t.Count, depth)
	case wire.TypeRelLoc, wire.TypeDataLoc:
		f.located(t, depth)
	case wire.TypeObject:
		f.object(t.Fields, depth)
	default:
		if b := f.c.bytes(t.Type.Size()); b != nil {
			f.fixed(t.Type, b)
		}
	}
}

// list appends the elements of an array. An array of code units is a text.
func (f *formatter) list(element *wire.Field, n, depth int) {
	switch element.Type {
	case wire.TypeUTF8:
		f.utf8(f.c.bytes(n))
		return
	case wire.TypeUTF16:
		f.text = appendUTF16(f.text, f.c.bytes(2*n))
		return
	}
	f.text = append(f.text, '[')
	for i := range n {
		if f.c.err != nil {
			return
		}
		if i > 0 {
			f.text = append(f.text, ',')
		}
		f.value(element, depth+1)
	}
	f.text = append(f.text, ']')
}

func (f *formatter) utf8(b []byte) {
	if utf8.Valid(b) {
		f.text = append(f.text, b...)
		return
	}
	f.text = append(f.text, string([]rune(string(b)))...)
}

// located appends an array that is elsewhere in the payload.
func (f *formatter) located(t *wire.Field, depth int) {
	word := f.c.u32()
	size, at := int(word>>16), int(word&0xffff)
	if t.Type == wire.TypeRelLoc {
		at += f.c.i
	}
	one := fixedSize(t.Element)
	if f.c.err != nil || one == 0 {
		f.c.fail(malformed("%s of elements without a fixed size", t.Type))
		return
	}
	if at+size > len(f.whole) || size%one != 0 {
		f.c.fail(malformed("%d bytes at %d of a payload of %d", size, at, len(f.whole)))
		return
	}
	outer := f.c
	f.c = cursor{b: f.whole[:at+size], i: at}
	f.list(t.Element, size/one, depth)
	outer.err = f.c.err
	f.c = outer
}

// object appends fields with their names.
func (f *formatter) object(fields []wire.Field, depth int) {
	f.text = append(f.text, "{ "...)
	for i := range fields {
		if i > 0 {
			f.text = append(f.text, ", "...)
		}
		f.text = strconv.AppendQuote(f.text, fields[i].Name)
		f.text = append(f.text, ':')
		from := len(f.text)
		if f.value(&fields[i], depth+1); f.c.err != nil {
			return
		}
		value := string(f.text[from:])
		f.text = strconv.AppendQuote(f.text[:from], value)
	}
	f.text = append(f.text, " }"...)
}

// fixed appends a value of a type with a fixed size.
func (f *formatter) fixed(t wire.Type, b []byte) {
	le := binary.LittleEndian
	switch t {
	case wire.TypeBoolean32:
		f.text = strconv.AppendBool(f.text, le.Uint32(b) != 0)
	case wire.TypeBoolean8:
		f.text = strconv.AppendBool(f.text, b[0] != 0)
	case wire.TypeUTF16:
		f.text = appendUTF16(f.text, b)
	case wire.TypeUTF8:
		f.utf8(b)
	case wire.TypeSByte:
		f.text = strconv.AppendInt(f.text, int64(int8(b[0])), 10)
	case wire.TypeByte:
		f.text = strconv.AppendUint(f.text, uint64(b[0]), 10)
	case wire.TypeInt16:
		f.text = strconv.AppendInt(f.text, int64(int16(le.Uint16(b))), 10)
	case wire.TypeUInt16:
		f.text = strconv.AppendUint(f.text, uint64(le.Uint16(b)), 10)
	case wire.TypeInt32:
		f.text = strconv.AppendInt(f.text, int64(int32(le.Uint32(b))), 10)
	case wire.TypeUInt32:
		f.text = strconv.AppendUint(f.text, uint64(le.Uint32(b)), 10)
	case wire.TypeInt64:
		f.text = strconv.AppendInt(f.text, int64(le.Uint64(b)), 10)
	case wire.TypeUInt64:
		f.text = strconv.AppendUint(f.text, le.Uint64(b), 10)
	case wire.TypeSingle:
		f.text = strconv.AppendFloat(f.text, float64(math.Float32frombits(le.Uint32(b))), 'g', -1, 32)
	case wire.TypeDouble:
		f.text = strconv.AppendFloat(f.text, math.Float64frombits(le.Uint64(b)), 'g', -1, 64)
	case wire.TypeDecimal:
		f.decimal(b)
	case wire.TypeDateTime:
		f.dateTime(le.Uint64(b))
	case wire.TypeGUID:
		f.text = fmt.Appendf(f.text, "%08x-%04x-%04x-%x-%x", le.Uint32(b), le.Uint16(b[4:]), le.Uint16(b[6:]), b[8:10], b[10:16])
	default:
		f.c.fail(malformed("field of type %d", t))
	}
}

// dateTime appends a time in units of 100 ns since 1601.
func (f *formatter) dateTime(v uint64) {
	const epoch = 11_644_473_600 // seconds from 1601 to 1970
	at := time.Unix(int64(v/1e7)-epoch, int64(v%1e7)*100).UTC()
	f.text = at.AppendFormat(f.text, "2006-01-02T15:04:05.9999999Z")
}

// decimal appends a decimal number: 96 bits, after a word with the sign and the number
// of digits after the point.
func (f *formatter) decimal(b []byte) {
	le := binary.LittleEndian
	flags := le.Uint32(b)
	v := new(big.Int).SetUint64(uint64(le.Uint32(b[4:])))
	v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(le.Uint64(b[8:])))
	if flags>>31 != 0 && v.Sign() != 0 {
		f.text = append(f.text, '-')
	}
	digits := v.String()
	point := int(flags >> 16 & 0xff)
	if point > 28 {
		f.c.fail(malformed("decimal number with %d digits after the point", point))
		return
	}
	for len(digits) <= point {
		digits = "0" + digits
	}
	f.text = append(f.text, digits[:len(digits)-point]...)
	if point > 0 {
		f.text = append(append(f.text, '.'), digits[len(digits)-point:]...)
	}
}

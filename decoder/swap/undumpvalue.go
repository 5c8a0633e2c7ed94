package swap

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	wire "rtrace-bpf/internal/wire/swap"
)

// value reads the value of a field, and the values within it.
func (u *undumper) value(f *wire.Field) (err error) {
	l := &u.lexer
	v := Value{Field: f}
	switch f.Type {
	case wire.U8:
		v.Num, err = l.uint(8)
	case wire.U32, wire.Hex32:
		v.Num, err = l.uint(32)
	case wire.I32:
		v.Num, err = l.int(32)
	case wire.U64, wire.Pointer:
		v.Num, err = l.uint(64)
	case wire.I64:
		v.Num, err = l.int(64)
	case wire.Float:
		v.Num, err = l.float(32)
	case wire.Double:
		v.Num, err = l.float(64)
	case wire.IPv4:
		v.Num, err = l.address()
	case wire.Time:
		var seconds uint32
		seconds, v.Nanos, err = l.clock()
		v.Num = uint64(seconds)
	case wire.String:
		v.Text, v.Cut, err = l.quoted()
	case wire.Sized, wire.Rest:
		v.Text, err = l.hex()
	case wire.Item:
		at := len(u.values)
		if err = u.item(); err == nil {
			u.values[at].Field = f
		}
		return err
	case wire.Items:
		return u.list(v, u.item)
	case wire.List:
		if f.Elements[0].Name == "" {
			return u.list(v, func() error { return u.value(&f.Elements[0]) })
		}
		return u.list(v, func() error {
			if !l.skip("{") {
				return malformed("%.40q where { should be", l.rest)
			}
			if err := u.fields(f.Elements, "", 0); err != nil {
				return err
			}
			if !l.skip("}") {
				return malformed("%.40q where } should be", l.rest)
			}
			return nil
		})
	}
	u.values = append(u.values, v)
	return err
}

// list reads the elements of a list in brackets.
func (u *undumper) list(v Value, element func() error) error {
	at := len(u.values)
	u.values = append(u.values, v)
	l := &u.lexer
	if !l.skip("[") {
		return malformed("%.40q where [ should be", l.rest)
	}
	for n := uint64(0); ; n++ {
		l.rest = strings.TrimLeft(l.rest, " ")
		if l.skip("]") {
			u.values[at].Num = n
			return nil
		}
		if err := element(); err != nil {
			return err
		}
	}
}

// item reads a letter and its value.
func (u *undumper) item() (err error) {
	l := &u.lexer
	if l.rest == "" || wire.LookupLetter(l.rest[0]) == nil {
		return malformed("%.40q where a letter should be", l.rest)
	}
	v := Value{Letter: l.rest[0]}
	def := wire.LookupLetter(v.Letter)
	l.rest = l.rest[1:]
	if def.Size > 0 || v.Letter == 's' {
		if !l.skip(":") {
			return malformed("%.40q where : should be", l.rest)
		}
	}
	switch v.Letter {
	case 'b', 'c':
		v.Num, err = l.uint(8)
	case 'd':
		v.Num, err = l.int(32)
	case 'x':
		v.Num, err = l.int(64)
	case 'p':
		v.Num, err = l.uint(64)
	case 'f':
		v.Num, err = l.float(32)
	case 'w':
		v.Num, err = l.float(64)
	case 's':
		v.Text, v.Cut, err = l.quoted()
	case 'D', 'F', 'W':
		err = u.array(&v)
	}
	u.values = append(u.values, v)
	return err
}

// array reads POINTER[ELEMENT …].
func (u *undumper) array(v *Value) (err error) {
	l := &u.lexer
	pointer := l.token("[ ")
	if v.Num, err = strconv.ParseUint(pointer, 0, 64); err != nil || !l.skip("[") {
		return malformed("array at %.40q", pointer)
	}
	for {
		l.rest = strings.TrimLeft(l.rest, " ")
		if l.skip("]") {
			return nil
		}
		var num uint64
		switch v.Letter {
		case 'D':
			num, err = l.int(32)
		case 'F':
			num, err = l.float(32)
		default:
			num, err = l.float(64)
		}
		if err != nil {
			return err
		}
		if v.Letter == 'W' {
			v.Text = binary.LittleEndian.AppendUint64(v.Text, num)
		} else {
			v.Text = binary.LittleEndian.AppendUint32(v.Text, uint32(num))
		}
	}
}

// float reads a number and returns its bits.
func (l *lexer) float(bits int) (uint64, error) {
	if l.skip(wordBits) {
		return l.uint(bits)
	}
	w := l.value()
	f, err := strconv.ParseFloat(w, bits)
	if err != nil {
		return 0, malformed("number %.40q", w)
	}
	if bits == 32 {
		return uint64(math.Float32bits(float32(f))), nil
	}
	return math.Float64bits(f), nil
}

// address reads an IPv4 address.
func (l *lexer) address() (uint64, error) {
	w := l.value()
	parts := strings.Split(w, ".")
	var num uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil || len(parts) != 4 {
			return 0, malformed("address %.40q", w)
		}
		num |= n << (8 * i)
	}
	return num, nil
}

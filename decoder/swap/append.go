package swap

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/swap"
)

// appendHeader appends the header of a message with a payload of size bytes.
func appendHeader(b []byte, m *Message, size int) []byte {
	b = binary.LittleEndian.AppendUint32(b, m.ID)
	b = binary.LittleEndian.AppendUint32(b, m.Sequence)
	b = appendTime(b, m.Seconds, m.Nanos, m.Formula)
	return binary.LittleEndian.AppendUint32(b, uint32(size))
}

func appendTime(b []byte, seconds, nanos uint32, formula bool) []byte {
	if formula {
		seconds, nanos = nanos, seconds
	}
	b = binary.LittleEndian.AppendUint32(b, seconds)
	return binary.LittleEndian.AppendUint32(b, nanos)
}

// appendValue appends the bytes of a value. The values within a list or an Items follow
// it as values of their own.
func appendValue(b []byte, v *Value, formula bool) []byte {
	if v.Letter != 0 {
		return appendItem(b, v)
	}
	switch v.Field.Type {
	case wire.U8:
		return append(b, byte(v.Num))
	case wire.U32, wire.I32, wire.Hex32, wire.Float, wire.IPv4, wire.Items:
		return binary.LittleEndian.AppendUint32(b, uint32(v.Num))
	case wire.U64, wire.I64, wire.Pointer, wire.Double:
		return binary.LittleEndian.AppendUint64(b, v.Num)
	case wire.Time:
		return appendTime(b, uint32(v.Num), v.Nanos, formula)
	case wire.String:
		return appendText(b, v)
	case wire.Sized, wire.Rest:
		return append(b, v.Text...)
	case wire.List:
		if v.Field.Count == wire.Counted {
			return binary.LittleEndian.AppendUint32(b, uint32(v.Num))
		}
	}
	return b
}

func appendText(b []byte, v *Value) []byte {
	b = append(b, v.Text...)
	if !v.Cut {
		b = append(b, 0)
	}
	return b
}

func appendItem(b []byte, v *Value) []byte {
	b = append(b, v.Letter)
	def := wire.LookupLetter(v.Letter)
	switch {
	case def.Array:
		b = binary.LittleEndian.AppendUint64(b, v.Num)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(v.Text)/def.Size))
		return append(b, v.Text...)
	case v.Letter == 's':
		return appendText(b, v)
	case def.Size == 1:
		return append(b, byte(v.Num))
	case def.Size == 4:
		return binary.LittleEndian.AppendUint32(b, uint32(v.Num))
	case def.Size == 8:
		return binary.LittleEndian.AppendUint64(b, v.Num)
	}
	return b
}

package jsontext

import (
	"strconv"
	"unicode/utf8"
)

// AppendKey appends a comma, the key and a colon. The key is not escaped; it
// must be a plain word.
func AppendKey(b []byte, key string) []byte {
	b = append(b, ',', '"')
	b = append(b, key...)
	return append(b, '"', ':')
}

// AppendInt appends a member whose value is an integer, with the comma before
// it, unless the value is zero.
func AppendInt(b []byte, key string, v int64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendInt(AppendKey(b, key), v, 10)
}

// AppendUint appends a member whose value is an integer, with the comma before
// it, unless the value is zero.
func AppendUint(b []byte, key string, v uint64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendUint(AppendKey(b, key), v, 10)
}

// AppendAddress appends a member whose value is an address (see [AppendHex]),
// with the comma before it, unless the value is zero.
func AppendAddress(b []byte, key string, v uint64) []byte {
	if v == 0 {
		return b
	}
	return AppendHex(AppendKey(b, key), v)
}

// AppendBool appends a member that is true, with the comma before it, unless
// the value is false.
func AppendBool(b []byte, key string, v bool) []byte {
	if !v {
		return b
	}
	return append(AppendKey(b, key), "true"...)
}

// AppendText appends a member whose value is a string, with the comma before
// it, unless the string is empty.
func AppendText(b []byte, key, v string) []byte {
	if v == "" {
		return b
	}
	return AppendString(AppendKey(b, key), v)
}

// AppendEnum appends a member whose value is the name of v, or v itself if it
// has none, unless v is zero.
func AppendEnum(b []byte, key string, v uint8, names []string) []byte {
	if v == 0 {
		return b
	}
	b = AppendKey(b, key)
	if int(v) < len(names) {
		return AppendString(b, names[v])
	}
	return strconv.AppendUint(b, uint64(v), 10)
}

const hexDigits = "0123456789abcdef"

// AppendHex appends v as a string "0x…" without leading zeros.
func AppendHex(b []byte, v uint64) []byte {
	b = append(b, `"0x`...)
	shift := 60
	for shift > 0 && v>>shift == 0 {
		shift -= 4
	}
	for ; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[v>>shift&15])
	}
	return append(b, '"')
}

// AppendBytes appends a member whose value is a string with two hexadecimal
// digits per byte of data, unless there are none.
func AppendBytes(b []byte, key string, data []byte) []byte {
	if len(data) == 0 {
		return b
	}
	b = append(AppendKey(b, key), '"')
	for _, c := range data {
		b = append(b, hexDigits[c>>4], hexDigits[c&15])
	}
	return append(b, '"')
}

// AppendString appends s as a JSON string. Valid UTF-8 is kept; other bytes are
// escaped so that they survive, see invalidByte.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0 // s[:done] is written
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' && c != 0x7f {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		b = append(b, s[done:i]...)
		b = appendEscape(b, c)
		i += size
		done = i
	}
	b = append(b, s[done:]...)
	return append(b, '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	r := uint32(c)
	if c >= utf8.RuneSelf {
		r += invalidByte
	}
	return append(b, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

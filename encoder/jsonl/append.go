package jsonl

import (
	"strconv"
	"unicode/utf8"

	wire "rtrace-bpf/internal/wire/jsonl"
)

// The functions below append one member of an object, with the comma before
// it. A key is written as it is: all keys are plain lower-case words. Zero
// values are left out.

func appendKey(b []byte, key string) []byte {
	b = append(b, ',', '"')
	b = append(b, key...)
	return append(b, '"', ':')
}

func appendInt(b []byte, key string, v int64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendInt(appendKey(b, key), v, 10)
}

func appendUint(b []byte, key string, v uint64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendUint(appendKey(b, key), v, 10)
}

func appendAddress(b []byte, key string, v uint64) []byte {
	if v == 0 {
		return b
	}
	return appendHex(appendKey(b, key), v)
}

func appendBool(b []byte, key string, v bool) []byte {
	if !v {
		return b
	}
	return append(appendKey(b, key), "true"...)
}

func appendText(b []byte, key, v string) []byte {
	if v == "" {
		return b
	}
	return appendString(appendKey(b, key), v)
}

// appendEnum appends the name of v, or v itself if it has none.
func appendEnum(b []byte, key string, v uint8, names []string) []byte {
	if v == 0 {
		return b
	}
	b = appendKey(b, key)
	if int(v) < len(names) {
		return appendString(b, names[v])
	}
	return strconv.AppendUint(b, uint64(v), 10)
}

const hexDigits = "0123456789abcdef"

// appendHex appends v as a string "0x…" without leading zeros.
func appendHex(b []byte, v uint64) []byte {
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

// appendBytes appends data as a string of two hexadecimal digits per byte.
func appendBytes(b []byte, key string, data []byte) []byte {
	if len(data) == 0 {
		return b
	}
	b = append(appendKey(b, key), '"')
	for _, c := range data {
		b = append(b, hexDigits[c>>4], hexDigits[c&15])
	}
	return append(b, '"')
}

// appendString appends s as a JSON string. Text is kept as UTF-8; bytes that
// are not valid UTF-8 are kept too, see wire.InvalidByte.
func appendString(b []byte, s string) []byte {
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
		r += wire.InvalidByte
	}
	return append(b, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

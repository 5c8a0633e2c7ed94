package binio

import (
	"encoding/binary"
	"math/bits"
)

// MaxUleb128 is the largest length in bytes of a 64-bit number as unsigned
// LEB128 in its shortest form.
const MaxUleb128 = 10

// AppendUleb128 appends v as unsigned LEB128 in its shortest form and returns
// the extended slice. Each byte holds seven bits, the lowest first, and all
// bytes except the last have the high bit set.
func AppendUleb128(dst []byte, v uint64) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// highBits has the high bit of each byte set.
const highBits = 0x8080808080808080

// Uleb128 reads the unsigned LEB128 number at the start of b and returns the
// number of bytes read, as package encoding/binary does. n is 0 if b ends
// inside the number, and -n is the number of bytes read if the number has more
// than MaxUleb128 bytes or does not fit into 64 bits. Forms that are longer
// than necessary are accepted.
func Uleb128(b []byte) (v uint64, n int) {
	if len(b) >= 8 {
		x := binary.LittleEndian.Uint64(b)
		if last := ^x & highBits; last != 0 {
			// Keep the bytes up to the first without its high bit, and join
			// their groups of seven bits pair by pair.
			x &= last ^ (last - 1)
			x = x&0x007f007f007f007f | x&0x7f007f007f007f00>>1
			x = x&0x00003fff00003fff | x&0x3fff00003fff0000>>2
			x = x&0x0fffffff | x&0x0fffffff00000000>>4
			return x, bits.TrailingZeros64(last)/8 + 1
		}
	}
	for i, c := range b {
		if i == MaxUleb128-1 && c > 1 || i == MaxUleb128 {
			return 0, -(i + 1)
		}
		if c < 0x80 {
			return v | uint64(c)<<(7*i), i + 1
		}
		v |= uint64(c&0x7f) << (7 * i)
	}
	return 0, 0
}

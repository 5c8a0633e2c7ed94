package binio

import (
	"encoding/binary"
	"math/bits"
)

// MaxUleb128 is how many bytes an unsigned LEB128 number of 64 bits takes at
// most in its shortest form.
const MaxUleb128 = 10

// AppendUleb128 appends v as an unsigned LEB128 number of the shortest form and
// returns the extended slice: seven bits a byte, the lowest first, the high bit
// set in all bytes but the last.
func AppendUleb128(dst []byte, v uint64) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// highBits are the high bits of all bytes.
const highBits = 0x8080808080808080

// Uleb128 reads the unsigned LEB128 number at the start of b and returns how
// many bytes it takes, as package encoding/binary does: n is 0 if b ends inside
// the number, and -n the number of bytes read if it has more than MaxUleb128
// bytes or does not fit into 64 bits. A longer form than needed is taken.
func Uleb128(b []byte) (v uint64, n int) {
	if len(b) >= 8 {
		x := binary.LittleEndian.Uint64(b)
		if last := ^x & highBits; last != 0 {
			// All bytes up to the first without its high bit, their
			// groups of seven bits moved together pair by pair.
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

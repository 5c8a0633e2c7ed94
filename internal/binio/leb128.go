package binio

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

// Uleb128 reads the unsigned LEB128 number at the start of b and returns how
// many bytes it takes, as package encoding/binary does: n is 0 if b ends inside
// the number, and -n the number of bytes read if it has more than MaxUleb128
// bytes or does not fit into 64 bits. A longer form than needed is taken.
func Uleb128(b []byte) (v uint64, n int) {
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

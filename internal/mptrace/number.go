package mptrace

import "math/bits"

const blanks = "                    "

var powersOfTen = func() (p [20]uint64) {
	for i, v := 0, uint64(1); i < len(p); i, v = i+1, v*10 {
		p[i] = v
	}
	return p
}()

// twoDigits holds the numbers 00 to 99.
var twoDigits = func() (t [200]byte) {
	for i := range 100 {
		t[2*i], t[2*i+1] = byte('0'+i/10), byte('0'+i%10)
	}
	return t
}()

// digits returns the number of decimal digits of v.
func digits(v uint64) int {
	v |= 1
	n := bits.Len64(v) * 1233 >> 12
	if v >= powersOfTen[n] {
		n++
	}
	return n
}

// appendDecimal appends v in at least width columns, at most 20, with leading
// blanks.
func appendDecimal(dst []byte, v uint64, width int) []byte {
	n := digits(v)
	dst = append(dst, blanks[:max(n, width)]...)
	i := len(dst)
	for v >= 100 {
		i -= 2
		two := twoDigits[v%100*2:]
		dst[i+1], dst[i] = two[1], two[0]
		v /= 100
	}
	if v >= 10 {
		dst[i-1], dst[i-2] = twoDigits[v*2+1], twoDigits[v*2]
	} else {
		dst[i-1] = byte('0' + v)
	}
	return dst
}

// appendAddress appends v as 0x and at least width upper-case hexadecimal
// digits.
func appendAddress(dst []byte, v uint64, width int) []byte {
	const zeros = "0x0000000000000000"
	n := max(width, (bits.Len64(v)+3)/4)
	dst = append(dst, zeros[:2+n]...)
	for i := len(dst) - 1; v != 0; i-- {
		dst[i] = "0123456789ABCDEF"[v&15]
		v >>= 4
	}
	return dst
}

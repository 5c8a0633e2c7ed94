package sptext

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestNumbers: numbers are written like those of the standard library, for every
// length, into a buffer with room and into one without.
func TestNumbers(t *testing.T) {
	numbers := []uint64{0, 1<<64 - 1}
	for n, i := uint64(1), 0; i < 20; n, i = n*10, i+1 {
		numbers = append(numbers, n-1, n, n+1)
	}
	for i := range uint64(10_000) { // every group of four digits, in both halves
		numbers = append(numbers, i, i*10_000, i*10_000+i)
	}
	for i := range 64 {
		numbers = append(numbers, 1<<i-1, 1<<i, 1<<i+1, rand.Uint64()>>i)
	}
	for _, v := range numbers {
		for _, room := range []int{0, 64} {
			b := append(make([]byte, 0, 1+room), 'x')
			if got, want := string(appendHex(b, v)), "x"+strconv.FormatUint(v, 16); got != want {
				t.Errorf("%d in hexadecimal: %s, want %s", v, got, want)
			}
			if got, want := string(appendUint(b, v)), "x"+strconv.FormatUint(v, 10); got != want {
				t.Errorf("%d in decimal: %s, want %s", v, got, want)
			}
		}
	}
}

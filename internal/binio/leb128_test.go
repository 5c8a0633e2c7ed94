package binio

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// TestUleb128LikeVarint compares with encoding/binary, whose varints have the
// same encoding.
func TestUleb128LikeVarint(t *testing.T) {
	numbers := []uint64{0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 1<<31 - 1, 1 << 31, 1 << 47, math.MaxInt64, math.MaxUint64}
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		numbers = append(numbers, random.Uint64()>>random.UintN(64))
	}
	for _, v := range numbers {
		want := binary.AppendUvarint([]byte{9}, v)
		got := AppendUleb128([]byte{9}, v)
		if !bytes.Equal(got, want) {
			t.Fatalf("%#x is written as %x, want %x", v, got, want)
		}
		if back, n := Uleb128(append(got[1:], 0xff)); back != v || n != len(want)-1 {
			t.Errorf("%#x is read as %#x in %d bytes", v, back, n)
		}
		if _, n := Uleb128(got[1 : len(got)-1]); n != 0 {
			t.Errorf("%x is read from a part of it", got)
		}
	}
}

func TestUleb128Odd(t *testing.T) {
	tests := []struct {
		name string
		in   []byte
		v    uint64
		n    int
	}{
		{"overlong zero", []byte{0x80, 0x80, 0}, 0, 3},
		{"overlong to the limit", []byte{0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}, 5, 10},
		{"over 64 bits", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}, 0, -10},
		{"eleven bytes", []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}, 0, -10},
		{"empty", nil, 0, 0},
	}
	for _, tt := range tests {
		if v, n := Uleb128(tt.in); v != tt.v || n != tt.n {
			t.Errorf("%s: %d in %d bytes, want %d in %d", tt.name, v, n, tt.v, tt.n)
		}
	}
}

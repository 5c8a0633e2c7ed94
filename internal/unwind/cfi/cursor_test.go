package cfi

import (
	"errors"
	"math"
	"testing"

	"rtrace-bpf/trace"
)

func TestLEB128(t *testing.T) {
	for _, tt := range []struct {
		data []byte
		want int64
	}{
		{[]byte{0}, 0},
		{[]byte{0x7f}, -1},
		{[]byte{0x3f}, 63},
		{[]byte{0x80, 0x7f}, -128},
		{[]byte{0xff, 0x7e}, -129},
		{[]byte{0xff, 0x00}, 127},
		{[]byte{0x80, 0x80, 0x80, 0x80, 0x78}, -1 << 31},
		{[]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f}, math.MinInt64},
		{[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00}, math.MaxInt64},
	} {
		c := cursor{b: tt.data, end: len(tt.data)}
		if got := c.sleb(); got != tt.want || c.short || c.at != len(tt.data) {
			t.Errorf("signed %x = %d, want %d", tt.data, got, tt.want)
		}
	}
	for _, tt := range []struct {
		data []byte
		want uint64
	}{
		{[]byte{0x7f}, 127},
		{[]byte{0x80, 0x01}, 128},
		{[]byte{0x80, 0x00}, 0}, // padded, as assemblers do
		{[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, math.MaxUint64},
	} {
		c := cursor{b: tt.data, end: len(tt.data)}
		if got := c.uleb(); got != tt.want || c.short || c.at != len(tt.data) {
			t.Errorf("unsigned %x = %d, want %d", tt.data, got, tt.want)
		}
	}
	for _, data := range [][]byte{nil, {0x80}, {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}} {
		c, d := cursor{b: data, end: len(data)}, cursor{b: data, end: len(data)}
		if c.uleb(); !c.short {
			t.Errorf("unsigned %x is no error", data)
		}
		if d.sleb(); !d.short {
			t.Errorf("signed %x is no error", data)
		}
	}
}

// TestNothingRemembered checks that a state remembered in one function is not used in another.
func TestNothingRemembered(t *testing.T) {
	m := little()
	m.fde(0, opRememberState)
	m.fde(0, opRestoreState)
	in := NewInterpreter(AMD64, 16)
	var errs []error
	for f, err := range m.section(AMD64).FDEs {
		if err != nil {
			t.Fatal(err)
		}
		errs = append(errs, in.Run(f, func(*Span) error { return nil }))
	}
	if errs[0] != nil || !errors.Is(errs[1], trace.ErrMalformed) {
		t.Errorf("errors %v", errs)
	}
}

package cfi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"rtrace-bpf/trace"
)

// TestFormsI386 reads entries with addresses of four bytes.
func TestFormsI386(t *testing.T) {
	for _, version := range []byte{1, 3, 4} {
		for _, eh := range []bool{true, false} {
			if eh && version == 4 {
				continue
			}
			m := &maker{order: binary.LittleEndian, eh: eh, short: true}
			cie := slices.Clone(commonI386)
			if !eh {
				cie = []byte{1, 0, 1, 0x7c, 8, opDefCFA, 4, 4, opOffset | 8, 1}
			}
			cie[0] = version
			if version == 4 {
				cie = slices.Insert(cie, 2, 4, 0) // sizes of addresses and of segments
			}
			m.fde(m.entry(-1, cie...), opAdvance|1, opDefCFAOffset, 8, opOffset|5, 2, opSetLoc, 0x10, 0x10, 0x40, 0, opDefCFARegister, 5)
			f := only(t, m.section(I386))
			got, err := rows(f, I386)
			if want := "0-1 esp+4 ra=c-4\n1-10 esp+8 ebp=c-8 ra=c-4\n10-100 ebp+8 ebp=c-8 ra=c-4\n"; got != want || err != nil || f.Start != madeStart {
				t.Errorf("version %d, eh %v: function at %#x, rows %q, %v, want %q", version, eh, f.Start, got, err, want)
			}
		}
	}
}

// TestAddressSize checks that addresses of another size than the machine's are refused.
func TestAddressSize(t *testing.T) {
	for machine, size := range map[Machine]byte{AMD64: 4, I386: 8, ARM64: 4} {
		m := &maker{order: binary.LittleEndian, short: size == 4}
		m.fde(m.entry(-1, 4, 0, size, 0, 1, 0x7c, 8, opDefCFA, 4, 4))
		wantError(t, fmt.Sprintf("%d bytes", size), m.section(machine))
	}
}

// TestEncodingsI386 reads addresses of 32-bit files, which wrap around.
func TestEncodingsI386(t *testing.T) {
	le := binary.LittleEndian
	const place = madeAddr + 18 + 8 // of an FDE's address, see TestEncodings
	words := func(start, length uint32) []byte { return le.AppendUint32(le.AppendUint32(nil, start), length) }
	for _, tt := range []struct {
		encoding   byte
		data       []byte // of start and length
		start, end uint64
	}{
		{0x00, words(madeStart, 16), madeStart, madeStart + 16},
		{0x08, words(madeStart, 16), madeStart, madeStart + 16},
		{0x08, words(0xf0001000, 16), 0xf0001000, 0xf0001010},
		{0x03, words(0xfffff000, 0x1000), 0xfffff000, 1 << 32},
		{0x0b, words(0xfffff000, 0x10), 0xfffff000, 0xfffff010},
		{0x10, words(0x1000, 16), place + 0x1000, place + 0x1010},
		{0x10, words(0xffffff00, 16), place - 0x100, place - 0xf0},
		{0x1b, words(0x80000000, 16), place + 1<<31, place + 1<<31 + 16},
		{0x1b, words(0xfffffff0, 16), place - 16, place},
		{0x1b, words(math.MaxUint32-place-15, 16), 1<<32 - 16, 1 << 32},
		{0x3b, words(0x1234, 16), 0x601234, 0x601244},
		{0x04, le.AppendUint64(le.AppendUint64(nil, madeStart), 16), madeStart, madeStart + 16},
	} {
		t.Run(fmt.Sprintf("%#x", tt.encoding), func(t *testing.T) {
			m := &maker{order: le, eh: true}
			m.entry(-1, 1, 'z', 'R', 0, 1, 0x7c, 8, 1, tt.encoding, opNop)
			m.entry(0, append(tt.data, 0)...)
			if f := only(t, m.section(I386)); f.Start != tt.start || f.End != tt.end {
				t.Errorf("function at %#x to %#x, want %#x to %#x", f.Start, f.End, tt.start, tt.end)
			}
		})
	}
	m := &maker{order: le, eh: true}
	m.entry(-1, 1, 'z', 'R', 0, 1, 0x7c, 8, 1, 0)
	m.entry(0, append(words(0xfffff000, 0x1001), 0)...)
	wantError(t, "beyond the address space", m.section(I386))
}

// TestPersonalityI386 skips pointers of four bytes.
func TestPersonalityI386(t *testing.T) {
	// The data begins at 16: an aligned pointer after the encoding at 17 is at 20.
	for _, data := range [][]byte{{6, 0x00, 1, 2, 3, 4, 0}, {8, 0x50, 0, 0, 1, 2, 3, 4, 0}} {
		m := &maker{order: binary.LittleEndian, eh: true, short: true}
		cie := append([]byte{1, 'z', 'P', 'R', 0, 1, 0x7c, 8}, data...)
		m.fde(m.entry(-1, append(cie, opDefCFA, 4, 4)...))
		if got, err := rows(only(t, m.section(I386)), I386); got != "0-100 esp+4\n" {
			t.Errorf("% x: rows %q, %v", data, got, err)
		}
	}
}

// TestFarAdvance checks that an address beyond the end of the address space ends the function.
func TestFarAdvance(t *testing.T) {
	m := &maker{order: binary.LittleEndian, eh: true, short: true}
	m.fde(m.entry(-1, commonI386...), opAdvance4, 0xff, 0xff, 0xff, 0xff, 0x3f)
	if got, err := rows(only(t, m.section(I386)), I386); got != "0-100 esp+4 ra=c-4\n" || err != nil {
		t.Errorf("rows %q, %v", got, err)
	}
	m = &maker{order: binary.LittleEndian, eh: true, short: true}
	m.fde(m.entry(-1, commonI386...), opNegateRA)
	if _, err := rows(only(t, m.section(I386)), I386); !errors.Is(err, trace.ErrUnsupported) {
		t.Errorf("a signed return address: %v", err)
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct{ sum, want, want64 uint64 }{
		{0x1234, 0x1234, 0x1234},
		{math.MaxUint64, math.MaxUint32, math.MaxUint64},
		{1<<32 + 4, 4, 1<<32 + 4},
	} {
		if got, got64 := I386.Wrap(tt.sum), AMD64.Wrap(tt.sum); got != tt.want || got64 != tt.want64 {
			t.Errorf("Wrap(%#x) = %#x and %#x, want %#x and %#x", tt.sum, got, got64, tt.want, tt.want64)
		}
	}
}

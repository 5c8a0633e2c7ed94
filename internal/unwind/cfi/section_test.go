package cfi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"rtrace-bpf/trace"
)

// TestForms reads the same function from entries of all forms.
func TestForms(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, eh := range []bool{true, false} {
			for _, wide := range []bool{false, true} {
				for _, version := range []byte{1, 3, 4} {
					if eh && version == 4 {
						continue
					}
					t.Run(fmt.Sprintf("%v/eh=%v/wide=%v/version %d", order, eh, wide, version), func(t *testing.T) {
						m := &maker{order: order, eh: eh, wide: wide}
						cie := slices.Clone(common)
						if eh {
							cie = slices.Clone(commonAMD64)
						}
						cie[0] = version
						if version == 4 {
							cie = slices.Insert(cie, 2, 8, 0) // sizes of addresses and of segments
						}
						at := m.entry(-1, cie...)
						m.fde(at, opAdvance|4, opDefCFAOffset, 16)
						f := only(t, m.section(AMD64))
						if f.Start != madeStart || f.End != madeEnd {
							t.Errorf("function at %#x to %#x", f.Start, f.End)
						}
						got, err := rows(f, AMD64)
						if want := "0-4 rsp+8 ra=c-8\n4-100 rsp+16 ra=c-8\n"; got != want || err != nil {
							t.Errorf("rows %q, %v, want %q", got, err, want)
						}
					})
				}
			}
		}
	}
}

// TestEncodings reads addresses in all supported encodings.
func TestEncodings(t *testing.T) {
	le := binary.LittleEndian
	// The address of an FDE follows a CIE of 4+4+10 and a header of 8 bytes.
	const place = madeAddr + 18 + 8
	tests := []struct {
		encoding byte
		data     []byte // of start and length
		start    uint64
	}{
		{0x00, le.AppendUint64(le.AppendUint64(nil, madeStart), 16), madeStart},
		{0x04, le.AppendUint64(le.AppendUint64(nil, madeStart), 16), madeStart},
		{0x0c, le.AppendUint64(le.AppendUint64(nil, madeStart), 16), madeStart},
		{0x03, le.AppendUint32(le.AppendUint32(nil, 0x80001000), 16), 0x80001000},
		{0x02, le.AppendUint16(le.AppendUint16(nil, 0x9000), 16), 0x9000},
		{0x01, []byte{0x81, 0x20, 16}, 0x1001},
		{0x09, []byte{0xff, 0x00, 16}, 0x7f},
		{0x1b, le.AppendUint32(le.AppendUint32(nil, 0x1000), 16), place + 0x1000},
		{0x1b, le.AppendUint32(le.AppendUint32(nil, ^uint32(0)-0xff), 16), place - 0x100},
		{0x1a, le.AppendUint16(le.AppendUint16(nil, 0xff00), 16), place - 0x100},
		{0x23, le.AppendUint32(le.AppendUint32(nil, 0x1234), 16), 0x401234},
		{0x3b, le.AppendUint32(le.AppendUint32(nil, 0x1234), 16), 0x601234},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%#x", tt.encoding), func(t *testing.T) {
			m := &maker{order: le, eh: true}
			m.entry(-1, 1, 'z', 'R', 0, 1, 0x78, 16, 1, tt.encoding, opNop)
			m.entry(0, append(tt.data, 0)...)
			if f := only(t, m.section(AMD64)); f.Start != tt.start || f.End != tt.start+16 {
				t.Errorf("function at %#x to %#x, want %#x and 16 bytes", f.Start, f.End, tt.start)
			}
		})
	}
	for _, encoding := range []byte{0xff, 0x80, 0x9b, 0x40, 0x50, 0x05, 0x0d, 0x60, 0x70} {
		m := &maker{order: le, eh: true}
		m.entry(-1, 1, 'z', 'R', 0, 1, 0x78, 16, 1, encoding)
		m.entry(0, make([]byte, 32)...)
		wantError(t, fmt.Sprintf("encoding %#x", encoding), m.section(AMD64))
	}
}

// wantError checks that a section has one entry, which is a syntax error.
func wantError(t *testing.T, what string, s *Section) {
	t.Helper()
	n := 0
	for f, err := range s.FDEs {
		n++
		if _, ok := errors.AsType[*trace.SyntaxError](err); !ok || f != nil {
			t.Errorf("%s: FDE %v, error %v", what, f, err)
		}
	}
	if n != 1 {
		t.Errorf("%s: %d entries", what, n)
	}
}

func TestAugmentations(t *testing.T) {
	tests := []struct {
		augmentation string
		data         []byte // before the factors: of "eh"; after: length and the rest
		signal, bad  bool
	}{
		{augmentation: "zR", data: []byte{1, 0}},
		{augmentation: "zRS", data: []byte{1, 0}, signal: true},
		{augmentation: "zRB", data: []byte{1, 0}},
		{augmentation: "zPLR", data: []byte{7, 0x9b, 1, 2, 3, 4, 0x1b, 0}},
		{augmentation: "zPR", data: []byte{2, 0xff, 0}},       // no personality routine
		{augmentation: "zLR", data: []byte{4, 0xff, 0, 9, 9}}, // more than the letters describe
		{augmentation: "zRX", data: []byte{1, 0}, bad: true},
		{augmentation: "R", data: []byte{0}, bad: true},
		{augmentation: "zR", data: []byte{0}, bad: true},
		{augmentation: "zR", data: []byte{99, 0}, bad: true},
		{augmentation: "zPR", data: []byte{2, 0x05, 0}, bad: true}, // no such format
		{augmentation: "zRRRRRRRRRRRRRRRRRRRRR", data: []byte{1, 0}, bad: true},
	}
	for _, tt := range tests {
		m := &maker{order: binary.LittleEndian, eh: true}
		cie := append([]byte{1}, append([]byte(tt.augmentation), 0, 1, 0x78, 16)...)
		m.entry(-1, append(append(cie, tt.data...), opDefCFA, 7, 8)...)
		m.fde(0)
		if tt.bad {
			wantError(t, tt.augmentation, m.section(AMD64))
			continue
		}
		f := only(t, m.section(AMD64))
		if got, err := rows(f, AMD64); f.Start != madeStart || f.CIE.Signal != tt.signal || got != "0-100 rsp+8\n" {
			t.Errorf("%s: function at %#x, signal %v, rows %q, %v", tt.augmentation, f.Start, f.CIE.Signal, got, err)
		}
	}
}

// TestOldException reads what GCC 2 wrote.
func TestOldException(t *testing.T) {
	m := &maker{order: binary.LittleEndian, eh: true}
	m.entry(-1, 1, 'e', 'h', 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 0x78, 16, opDefCFA, 7, 8)
	m.entry(0, m.address(m.address(nil, madeStart), 0x100)...)
	if got, err := rows(only(t, m.section(AMD64)), AMD64); got != "0-100 rsp+8\n" {
		t.Errorf("rows %q, %v", got, err)
	}
}

// TestContributions covers a static link, which joins the .eh_frame of several files, each with
// its terminator.
func TestContributions(t *testing.T) {
	m := little()
	m.fde(0)
	m.b = append(m.b, 0, 0, 0, 0)
	at := m.entry(-1, commonAMD64...)
	m.fde(at)
	m.b = append(m.b, 0, 0, 0, 0, 0, 0, 0, 0)
	n := 0
	for _, err := range m.section(AMD64).FDEs {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != 2 {
		t.Errorf("%d FDEs, want 2", n)
	}
}

// TestBroken checks that entries after a broken one are read.
func TestBroken(t *testing.T) {
	breaks := map[string]func(*maker){
		"too short":       func(m *maker) { m.entry(0, 1, 2, 3) },
		"no CIE":          func(m *maker) { m.entry(4, make([]byte, 32)...) },
		"negative length": func(m *maker) { m.entry(0, append(m.address(m.address(nil, madeStart), ^uint64(0)), 0)...) },
		"no pointer":      func(m *maker) { m.b = append(m.b, 2, 0, 0, 0, 9, 9) },
		"FDE as CIE":      func(m *maker) { m.entry(len(little().b), make([]byte, 32)...) },
	}
	for name, damage := range breaks {
		m := little()
		m.fde(0)
		damage(m)
		m.fde(0)
		good, bad := 0, 0
		for f, err := range m.section(AMD64).FDEs {
			if err == nil && f.Start == madeStart {
				good++
			} else if err != nil {
				bad++
			}
		}
		if good != 2 || bad != 1 {
			t.Errorf("%s: %d good and %d bad entries, want 2 and 1", name, good, bad)
		}
	}
	for _, length := range []uint32{1000, 0xfffffff0, 0xffffffff} {
		m := little()
		m.b = binary.LittleEndian.AppendUint32(m.b, length)
		wantError(t, fmt.Sprintf("length %#x", length), m.section(AMD64))
	}
}

// TestGivesUp checks that a section of only broken entries causes a limited number of errors.
func TestGivesUp(t *testing.T) {
	m := little()
	for range 3 * maxBroken {
		m.entry(0)
	}
	n := 0
	var last error
	for _, err := range m.section(AMD64).FDEs {
		n, last = n+1, err
	}
	if n != maxBroken+1 || !errors.Is(last, trace.ErrLimit) {
		t.Errorf("%d errors, the last one %v", n, last)
	}
}

// TestManyCIEs has as many CIEs as there are source files, each used again at the end.
func TestManyCIEs(t *testing.T) {
	m := &maker{order: binary.LittleEndian}
	var all []int
	for range maxKept + 100 {
		all = append(all, m.entry(-1, common...))
		m.fde(all[len(all)-1])
	}
	for _, cie := range all {
		m.fde(cie)
	}
	n := 0
	for f, err := range m.section(AMD64).FDEs {
		if err != nil || f.Start != madeStart || f.CIE.Offset != all[n%len(all)] {
			t.Fatalf("FDE %d is %+v, %v", n, f, err)
		}
		n++
	}
	if n != 2*len(all) {
		t.Errorf("%d FDEs, want %d", n, 2*len(all))
	}
}

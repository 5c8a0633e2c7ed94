package cfi

import (
	"errors"
	"testing"
)

// span adds an FDE for other addresses than those of the made function.
func (m *maker) span(start, end uint64, program ...byte) int {
	return m.entry(0, append(append(m.address(m.address(nil, start), end-start), 0), program...)...)
}

func TestIndex(t *testing.T) {
	m := little()
	m.span(0x300, 0x400)
	m.span(0x100, 0x200) // out of order
	m.span(0x180, 0x190) // within that
	m.span(0x180, 0x1a0) // the same again
	m.span(0x250, 0x250) // nothing
	m.entry(0)           // broken
	x, err := NewIndex(m.section(AMD64))
	if err == nil || x.Len() != 3 {
		t.Fatalf("%d FDEs, error %v", x.Len(), err)
	}
	for pc, want := range map[uint64]uint64{
		0: 0, 0xff: 0, 0x100: 0x100, 0x17f: 0x100, 0x180: 0x180, 0x18f: 0x180, 0x190: 0, 0x1ff: 0, 0x250: 0,
		0x300: 0x300, 0x3ff: 0x300, 0x400: 0, ^uint64(0): 0,
	} {
		f, ok := x.Find(pc)
		if ok != (want != 0) || ok && f.Start != want {
			t.Errorf("Find(%#x) = %v, %v, want the function at %#x", pc, f, ok, want)
		}
	}
}

func TestRowAt(t *testing.T) {
	m := little()
	m.fde(0, opAdvance|4, opDefCFAOffset, 16, opAdvance|4, 0x3f)
	f := only(t, m.section(AMD64))
	for pc, want := range map[uint64]int64{0: 8, 3: 8, 4: 16, 7: 16} {
		if row, err := f.RowAt(madeStart + pc); err != nil || row.CFA.Offset != want {
			t.Errorf("RowAt(%d) = %+v, %v, want CFA offset %d", pc, row.CFA, err, want)
		}
	}
	if _, err := f.RowAt(madeStart + 8); err == nil || errors.Is(err, ErrNoRow) {
		t.Errorf("row after a broken instruction: %v", err)
	}
	for _, pc := range []uint64{madeStart - 1, madeEnd} {
		m := little()
		m.fde(0)
		if _, err := only(t, m.section(AMD64)).RowAt(pc); !errors.Is(err, ErrNoRow) {
			t.Errorf("RowAt(%#x): %v, want ErrNoRow", pc, err)
		}
	}
	stop := errors.New("stop")
	if err := f.Rows(func(*Row) error { return stop }); err != stop {
		t.Errorf("error of yield comes back as %v", err)
	}
}

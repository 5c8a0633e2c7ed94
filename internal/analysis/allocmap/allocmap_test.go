package allocmap

import (
	"strings"
	"testing"
)

// cells returns the first row of a drawing without trailing blanks.
func cells(d Drawing) string {
	return strings.TrimRight(strings.ReplaceAll(string(d.Cells[:PerRow]), "\x00", " "), " ")
}

func TestDraw(t *testing.T) {
	type block struct{ address, size uint64 }
	const base = 0x10000
	for _, tt := range []struct {
		name   string
		o      Options
		h      Heap
		runs   [][]block
		cells  string
		pages  int
		out    int
		beyond int
	}{
		{"nothing", Options{}, Heap{Base: base}, nil, "", 0, 0, 0},
		{"one", Options{Single: true}, Heap{Base: base}, [][]block{{{base + 0x1010, 1}}}, " #", 1, 0, 0},
		{"the header is in the page before", Options{}, Heap{Base: base}, [][]block{{{base + 0x2000, 1}}}, " 00", 2, 0, 0},
		{"the later run is on top", Options{}, Heap{Base: base}, [][]block{{{base + 0x10, 0x3000}}, {{base + 0x1010, 8}}, {}, {{base + 0x3010, 0}}}, "0102", 4, 0, 0},
		{"all marks", Options{}, Heap{Base: base, Top: base + 0x8000, Low: base + 0x1000, High: base + 0x2800, KeepCost: 0x4000}, [][]block{{{base + 0x2010, 8}}}, " <0>|   T", 1, 0, 0},
		{"marks find a free place", Options{}, Heap{Base: base, Top: base + 0x8000, High: base + 0x10, KeepCost: 0x8000}, [][]block{{{base + 0x10, 0x4000}}}, "00000|  T", 5, 0, 0},
		{"a mark has no place", Options{}, Heap{Base: base, Top: base + 0x2000, High: base}, [][]block{{{base + 0x10, 0x1ff8}}}, "000", 3, 0, 0},
		{"above the top", Options{}, Heap{Base: base, Top: base + 0x1000}, [][]block{{{base + 0x10, 1}, {base + 0x1000, 1}}}, "0T", 1, 1, 0},
		{"below the base", Options{}, Heap{Base: base}, [][]block{{{base - 1, 1}, {base + 7, 1}, {0, 1}}}, "", 0, 3, 0},
		{"too far", Options{}, Heap{Base: base}, [][]block{{{base + maxSize, 1}, {base + 0x10, ^uint64(0)}, {^uint64(0), 1}}}, "", 0, 3, 0},
		{"marks beyond", Options{}, Heap{Base: base, Top: base - 1, Low: 1, High: 1}, [][]block{{{base + 0x10, 1}}}, "", 0, 1, 3},
		{"no base", Options{}, Heap{}, [][]block{{{base + 0x2010, 1}, {base + 0x10, 1}}}, "0 0", 2, 0, 0},
		{"small pages", Options{PageSize: 1024}, Heap{Base: base + 1}, [][]block{{{base + 0x410, 1}}}, " 0", 1, 0, 0},
		{"pages of 3 KB", Options{PageSize: 3072}, Heap{Base: 3 * 3072}, [][]block{{{4*3072 + 8, 1}}}, " 0", 1, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := New(tt.o, tt.h)
			for i, run := range tt.runs {
				if i > 0 {
					m.Next()
				}
				for _, b := range run {
					m.Add(b.address, b.size)
				}
			}
			d := m.Draw()
			if got := cells(d); got != tt.cells || d.Pages != tt.pages || d.Outside != tt.out || len(d.Beyond) != tt.beyond {
				t.Errorf("%q, %d pages, %d outside, beyond %q; want %q, %d, %d, %d", got, d.Pages, d.Outside, d.Beyond, tt.cells, tt.pages, tt.out, tt.beyond)
			}
			if len(d.Cells)%PerRow != 0 {
				t.Errorf("%d cells", len(d.Cells))
			}
		})
	}
}

func TestSay(t *testing.T) {
	one, two := Heap{0x2000, 0x5000, 0x2500, 0x4000, 10}, Heap{0x1000, 0x4000, 0x2400, 0x4500, 0}
	for legacy, want := range map[bool]Heap{
		false: {0x1000, 0x5000, 0x2400, 0x4500, 10},
		true:  {0x2000, 0x4000, 0x2400, 0x4500, 10},
	} {
		m := New(Options{Legacy: legacy}, Heap{})
		m.Extend(one)
		m.Extend(two)
		m.Extend(Heap{})
		if m.Heap() != want {
			t.Errorf("legacy %v: %+v", legacy, m.Heap())
		}
	}
}

// TestRuns checks that the blocks of ten runs are drawn as digits.
func TestRuns(t *testing.T) {
	m := New(Options{}, Heap{Base: 0x1000})
	for i := range uint64(12) {
		m.Next()
		m.Add(0x1010+i*0x1000, 1)
	}
	if got := cells(m.Draw()); got != "0123456789##" {
		t.Errorf("%q", got)
	}
}

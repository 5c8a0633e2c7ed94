package pagemap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// area describes one area of a generated attachment.
type area struct {
	start, end uint64
	pages      []Page
}

// forge encodes areas in a layout.
func forge(l layout, areas ...area) []byte {
	var b []byte
	order := l.order.(binary.AppendByteOrder)
	word := func(n uint64) {
		if l.wide {
			b = order.AppendUint64(b, n)
		} else {
			b = order.AppendUint32(b, uint32(n))
		}
	}
	for _, a := range areas {
		word(a.start)
		word(a.end)
		b = order.AppendUint32(b, uint32(len(a.pages)*l.page))
		if l.wide {
			b = append(b, 0, 0, 0, 0)
		}
		for _, p := range a.pages {
			b = order.AppendUint32(b, uint32(p.Info))
			if l.page == 24 {
				b = append(b, 0xaa, 0xaa, 0xaa, 0xaa)
			}
			b = order.AppendUint64(b, p.Flags)
			b = order.AppendUint32(b, p.Count)
			if l.page == 24 {
				b = append(b, 0xbb, 0xbb, 0xbb, 0xbb)
			}
		}
	}
	return b
}

func some(n int) []Page {
	pages := make([]Page, n)
	for i := range pages {
		pages[i] = Page{Info(i % 8), 1<<40 | uint64(i), uint32(i) + 1}
	}
	return pages
}

// TestLayouts checks that each machine's structs are recognized.
func TestLayouts(t *testing.T) {
	for _, l := range layouts() {
		for _, size := range []uint64{4096, 16384} {
			t.Run(fmt.Sprintf("%v %v %d %d", l.order, l.wide, l.page, size), func(t *testing.T) {
				one := area{0x400000, 0x400000 + 3*size, some(3)}
				two := area{0x90000000, 0x90000000 + 5000*size, some(5000)}
				b := forge(l, one, two)
				p, err := OpenPages(bytes.NewReader(b), int64(len(b)))
				if err != nil {
					t.Fatal(err)
				}
				if p.PageSize != size || p.layout != l {
					t.Errorf("pages of %d bytes, layout %+v", p.PageSize, p.layout)
				}
				for _, a := range []area{one, two} {
					for i, want := range a.pages {
						got, ok, err := p.Page(&Area{Start: a.start, End: a.end}, uint64(i))
						if err != nil || !ok || got != want {
							t.Fatalf("page %d: %+v, %v, %v; want %+v", i, got, ok, err, want)
						}
					}
				}
				if p.Has(&Area{Start: one.start, End: one.end + size}) {
					t.Error("an area without records is found")
				}
				if _, ok, err := p.Page(&Area{Start: one.start, End: one.end}, 3); ok || err != nil {
					t.Errorf("page after the end: %v, %v", ok, err)
				}
			})
		}
	}
}

// TestCutPages checks that complete areas are read from a truncated file and
// from one with a tail.
func TestCutPages(t *testing.T) {
	l := layouts()[0]
	one, two := area{0x1000, 0x3000, some(2)}, area{0x8000, 0xa000, some(2)}
	whole := forge(l, one, two)
	first := len(forge(l, one))
	for n := range len(whole) {
		p, err := OpenPages(bytes.NewReader(whole[:n]), int64(n))
		if n < first {
			if !errors.Is(err, ErrLayout) {
				t.Errorf("%d bytes: %v", n, err)
			}
			continue
		}
		if err != nil || !p.Has(&Area{Start: one.start, End: one.end}) || p.Has(&Area{Start: two.start, End: two.end}) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for _, tail := range []string{"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", strings.Repeat("\xff", 100), strings.Repeat("\x00", 100)} {
		b := append(bytes.Clone(whole), tail...)
		if p, err := OpenPages(bytes.NewReader(b), int64(len(b))); err != nil || !p.Has(&Area{Start: two.start, End: two.end}) {
			t.Errorf("with tail %q: %v", tail, err)
		}
	}
}

func TestBadPages(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "short": "abc", "text": strings.Repeat("all work and no play\n", 100), "zeros": strings.Repeat("\x00", 1000),
		"no page": string(forge(layouts()[0], area{0x1000, 0x1000, nil})), "odd size": string(forge(layouts()[0], area{0x1000, 0x4000, some(2)})),
	} {
		if _, err := OpenPages(strings.NewReader(text), int64(len(text))); !errors.Is(err, ErrLayout) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenPages(strings.NewReader(""), MaxPageFlags+1); err == nil {
		t.Error("a file above the size limit is accepted")
	}
	// A file that shrinks while it is read.
	b := forge(layouts()[0], area{0x1000, 0x3001000, some(0x3000)})
	p, err := OpenPages(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	p.r, p.buf = bytes.NewReader(b[:100]), nil
	if _, _, err := p.Page(&Area{Start: 0x1000, End: 0x3001000}, 0x2fff); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
}

// TestRealPages checks that the real attachment has an area for each line of
// the real maps, except the last one, which a process cannot read.
func TestRealPages(t *testing.T) {
	const dir = "../../../testdata/corpus/sp-rtrace/"
	maps, err := os.Open(dir + "27506-pagemap-maps-0")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	areas, err := ReadMaps(maps)
	if err != nil || len(areas) != 50 {
		t.Fatal(len(areas), err)
	}
	b, err := os.ReadFile(dir + "27506-pagemap-pageflags-0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := OpenPages(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range areas {
		if p.Has(&a) != (i < len(areas)-1) {
			t.Errorf("%s: %v", a.Line, p.Has(&a))
		}
	}
	heap := areas[5]
	if heap.Path != "[heap]" || !heap.Write || heap.Shared || heap.Pages(p.PageSize) != 33 {
		t.Errorf("%+v", heap)
	}
	if page, ok, err := p.Page(&heap, 1); err != nil || !ok || page != (Page{InMemory, 0x400005828, 1}) || !page.Dirty() {
		t.Errorf("%+v, %v, %v", page, ok, err)
	}
}

func FuzzPages(f *testing.F) {
	for _, l := range layouts() {
		f.Add(forge(l, area{0x1000, 0x3000, some(2)}, area{0x8000, 0xa000, some(2)}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := OpenPages(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if !errors.Is(err, ErrLayout) {
				t.Fatal(err)
			}
			return
		}
		for at := range p.at {
			a := Area{Start: at.start, End: at.end}
			if n := a.Pages(p.PageSize); n == 0 || n > uint64(len(b)) {
				t.Fatalf("%d pages in %d bytes", n, len(b))
			}
			if _, ok, err := p.Page(&a, a.Pages(p.PageSize)-1); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
	})
}

func TestMask(t *testing.T) {
	for marks, want := range map[string]uint64{
		"": 0, "L": 1, "D": 1 << 4, "DS": 1<<4 | 1<<7, "ba": 1<<14 | 1<<12, "A": 1 << 6, "I": 1 << 9, "P": 1 << 35, "g": 1 << 26,
	} {
		if got, unknown := Mask(marks); got != want || unknown != "" {
			t.Errorf("%s: %#x, %q", marks, got, unknown)
		}
	}
	for marks, want := range map[string]string{"?": "?", "L?D": "?", "ä": "ä", "\x00": "\x00"} {
		if _, unknown := Mask(marks); unknown != want {
			t.Errorf("%q: %q", marks, unknown)
		}
	}
}

func TestShown(t *testing.T) {
	for _, tt := range []struct{ flags, want uint64 }{
		{0, 0},
		{1<<2 | 1<<34, 1 << 2},                     // for kernel developers
		{1<<11 | 1<<15 | 1<<16, 1 << 11},           // a compound page
		{1<<17 | 1<<15, 1<<17 | 1<<15},             // a huge page
		{1 << 9, 1 << 48},                          // readahead
		{1<<9 | 1<<8, 1<<9 | 1<<8},                 // reclaim
		{1<<7 | 1<<6 | 1<<1, 1<<7 | 1<<50 | 1<<51}, // a slab page
		{1<<7 | 1<<35, 1<<7 | 1<<49},
		{1<<6 | 1<<1, 1<<6 | 1<<1},
	} {
		if got := Shown(tt.flags); got != tt.want {
			t.Errorf("%#x: %#x, want %#x", tt.flags, got, tt.want)
		}
	}
	if got := Marks(1<<2|1<<60, 1<<2|1<<3|1<<60); got != "R.?" {
		t.Errorf("marks %q", got)
	}
}

func TestReadMaps(t *testing.T) {
	text := "1000-3000 rw-p 00000000 00:00 0 \n" +
		"no line\n" +
		"3000-4000 r-xs 00000000 fe:00 12    /opt/a b (deleted)\r\n" +
		"5000-4000 rw-p 00000000 00:00 0 backwards\n" +
		"6000-7000 rw-s 00000000 00:00 0 /dev/\x1b[31mred\n" +
		"8000-9000 rw-p 0"
	areas, err := ReadMaps(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Area{
		{Start: 0x1000, End: 0x3000, Write: true, Line: "1000-3000 rw-p 00000000 00:00 0 "},
		{Start: 0x3000, End: 0x4000, Shared: true, Path: "/opt/a b (deleted)", Line: "3000-4000 r-xs 00000000 fe:00 12    /opt/a b (deleted)"},
		{Start: 0x6000, End: 0x7000, Write: true, Shared: true, Path: "/dev/?[31mred", Line: "6000-7000 rw-s 00000000 00:00 0 /dev/?[31mred"},
		{Start: 0x8000, End: 0x9000, Write: true, Line: "8000-9000 rw-p 0"},
	}
	if d := cmp.Diff(want, areas); d != "" {
		t.Errorf("areas (-want +got):\n%s", d)
	}
	for name, text := range map[string]string{"empty": "", "none": "a\nb\n", "one long line": strings.Repeat("x", maxLine+1)} {
		if _, err := ReadMaps(strings.NewReader(text)); !errors.Is(err, ErrNoAreas) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadMaps(io.MultiReader(strings.NewReader(strings.Repeat("1000-2000 rw-p 0 0 0\n", maxAreas+1)))); err == nil {
		t.Error("too many areas are accepted")
	}
}

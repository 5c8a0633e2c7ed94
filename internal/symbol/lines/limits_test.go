package lines

import (
	"bytes"
	"debug/dwarf"
	"errors"
	"testing"

	"rtrace-bpf/internal/binio"
	"rtrace-bpf/trace"
)

// newest returns a maker for version 5 and 64-bit little-endian machines.
func newest() *maker {
	return &maker{width: width{version: 5, addr: 8}, order: binio.Order{Pointer: 8}}
}

// TestLimits checks that what a file can claim has limits, and that lookups still use what
// precedes the claim.
func TestLimits(t *testing.T) {
	huge := binio.AppendUleb128(nil, 1<<60)
	for _, tt := range []struct {
		name   string
		change func(*Info)
		want   error
		lines  bool // only the line of the function is known
		none   bool // nothing is known
	}{
		{"as made", func(*Info) {}, nil, false, false},
		{"count of files", func(i *Info) {
			at := bytes.Index(i.line, []byte("a.c\x00")) - 1
			i.line = append(append(bytes.Clone(i.line[:at]), huge...), i.line[at+1:]...)
			i.line[0] += byte(len(huge)) - 1
		}, trace.ErrMalformed, false, false},
		{"files of no bytes", func(i *Info) {
			at := bytes.Index(i.line, []byte("/dir")) - 4
			i.line = append(append(bytes.Clone(i.line[:at]), 0), huge...)
			i.line[0], i.line[8] = byte(len(i.line)-4), byte(len(i.line)-12)
		}, trace.ErrMalformed, false, false},
		{"too many attributes", func(i *Info) {
			i.abbrev = append([]byte{9, byte(dwarf.TagVariable), 0}, bytes.Repeat([]byte{byte(dwarf.AttrName), byte(formData1)}, maxPerEntry+1)...)
		}, trace.ErrLimit, false, true},
		{"too many attributes without bytes", func(i *Info) {
			i.abbrev = append([]byte{9, byte(dwarf.TagVariable), 0}, bytes.Repeat([]byte{byte(dwarf.AttrExternal), byte(formFlagPresent)}, maxEmpty+1)...)
		}, trace.ErrLimit, false, true},
		{"indirect forms in a chain", func(i *Info) {
			at := bytes.Index(i.info, []byte("g\x00"))
			i.abbrev = append(bytes.Clone(i.abbrev[:len(i.abbrev)-1]), 6, byte(dwarf.TagVariable), 0, byte(dwarf.AttrName), byte(formIndirect), 0, 0, 0)
			i.info = append(append(bytes.Clone(i.info[:at-1]), 6), bytes.Repeat([]byte{byte(formIndirect)}, 64)...)
			i.info[0] = byte(len(i.info) - 4)
		}, trace.ErrMalformed, true, false},
		{"depth", func(i *Info) {
			at := bytes.Index(i.info, []byte("std\x00")) - 1
			i.info = append(bytes.Clone(i.info[:at]), bytes.Repeat([]byte("\x05x\x00"), maxDepth+1)...)
			binio.Order{}.PutU32(i.info, uint32(len(i.info)-4))
		}, trace.ErrLimit, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := newest().make()
			tt.change(i)
			tab := newTable(i, made, func(uint64) string { return "symbol" })
			frames := tab.AppendFrames(nil, madeAddr)
			err := tab.Err()
			if _, ok := errors.AsType[*trace.SyntaxError](err); tt.want != nil && !ok || !errors.Is(err, tt.want) {
				t.Errorf("error %v, want a SyntaxError with %v", err, tt.want)
			}
			switch {
			case tt.none:
				if len(frames) > 0 {
					t.Errorf("frames %+v", frames)
				}
			case len(frames) != 1:
				t.Errorf("frames %+v", frames)
			case tt.lines && (frames[0].Function != "symbol" || frames[0].Line != 10):
				t.Errorf("frames %+v, want the line only", frames)
			case !tt.lines && frames[0].Function != "_Z1fv":
				t.Errorf("frames %+v, want the function", frames)
			}
			checkTable(t, tab)
		})
	}
}

// A unit that cannot be read does not hide the next one.
func TestBrokenUnit(t *testing.T) {
	good := newest().make()
	for name, head := range map[string][]byte{
		"version 9":           {4, 0, 0, 0, 9, 0, 0, 0},
		"unknown type":        {8, 0, 0, 0, 5, 0, 99, 8, 0, 0, 0, 0},
		"address of 3 bytes":  {8, 0, 0, 0, 5, 0, 1, 3, 0, 0, 0, 0},
		"unknown entry":       {9, 0, 0, 0, 5, 0, 1, 8, 0, 0, 0, 0, 77},
		"no entry":            {8, 0, 0, 0, 5, 0, 1, 8, 0, 0, 0, 0},
		"table that is not":   {9, 0, 0, 0, 5, 0, 1, 8, 0xff, 0xff, 0xff, 0x7f, 1},
		"table in the middle": {9, 0, 0, 0, 5, 0, 1, 8, 3, 0, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			i := *good
			i.info = append(bytes.Clone(head), good.info...)
			tab := newTable(&i, made, func(uint64) string { return "" })
			if f := tab.AppendFrames(nil, madeAddr); len(f) != 1 || f[0].Function != "_Z1fv" || f[0].Line != 10 {
				t.Errorf("frames %+v", f)
			}
			checkTable(t, tab)
		})
	}
}

// A chain of entries that refer to each other ends somewhere.
func TestNameInCircles(t *testing.T) {
	i := newest().make()
	m := newest()
	m.abbreviation(1, dwarf.TagCompileUnit, 1)
	m.abbreviation(2, dwarf.TagSubprogram, 0, uint64(dwarf.AttrSpecification), uint64(formRef4), uint64(dwarf.AttrLowpc), uint64(formAddr), uint64(dwarf.AttrHighpc), uint64(formData1))
	i.abbrev = m.done()
	m.unit(func() {
		m.uint(2, 5)
		m.u8(unitCompile, 8)
		m.offsetTo(0)
		m.uleb(1, 2)
		m.uint(4, uint64(4+len(m.b)-1))
		m.uint(8, madeAddr)
		m.u8(madeSize, 0)
	})
	i.info = m.done()
	tab := newTable(i, made, func(uint64) string { return "" })
	tab.index = unitIndex{[]unitRange{{extent{madeAddr, madeAddr + madeSize}, 0}}, []uint64{madeAddr + madeSize}}
	if f := tab.AppendFrames(nil, madeAddr); len(f) != 1 || f[0] != (Frame{}) {
		t.Errorf("frames %+v, want one without a name", f)
	}
}

// TestForget checks that units that were dropped are read again.
func TestForget(t *testing.T) {
	i := newest().make()
	tab := newTable(i, made, func(uint64) string { return "" })
	want := tab.AppendFrames(nil, madeAddr+0x10)
	if len(tab.loaded.list) != 1 || tab.loaded.bytes == 0 {
		t.Fatalf("%d units loaded, %d bytes", len(tab.loaded.list), tab.loaded.bytes)
	}
	tab.loaded.drop()
	if len(tab.loaded.list) != 0 || tab.loaded.bytes != 0 || tab.units[0].data != nil {
		t.Fatalf("%d units loaded, %d bytes", len(tab.loaded.list), tab.loaded.bytes)
	}
	if got := tab.AppendFrames(nil, madeAddr+0x10); len(got) != len(want) || got[0] != want[0] {
		t.Errorf("frames %+v, before %+v", got, want)
	}
}

// A list of ranges of either kind ends where it exceeds the limit for one file.
func TestLongListOfRanges(t *testing.T) {
	const more = maxRanges + 1000
	i := newest().make()
	tab := newTable(i, []extent{{0x1000, 0x2000}}, func(uint64) string { return "" })
	u := &unit{width: width{version: 5, addr: 4}, low: 0x1000}
	i.ranges = bytes.Repeat([]byte{1, 0, 0, 0, 2, 0, 0, 0}, more)
	i.rangeLists = bytes.Repeat([]byte{rangeOffsets, 1, 2}, more)
	for name, read := range map[string]func(*rangeReader, uint64){"old": (*rangeReader).oldList, "new": (*rangeReader).newList} {
		tab.budget = maxUnitWork
		r := rangeReader{t: tab, u: u}
		read(&r, 0)
		if got := r.list; len(got) != maxRanges || got[0] != (extent{0x1001, 0x1002}) {
			t.Errorf("%s: %d ranges, want %d", name, len(got), maxRanges)
		}
	}
}

// A string that is longer than any name is ignored, and is not searched to its end.
func TestLongString(t *testing.T) {
	section := append(bytes.Repeat([]byte("x"), maxName), 0)
	if got := text(section, 0); len(got) != maxName {
		t.Errorf("%d bytes, want %d", len(got), maxName)
	}
	if got := text(append([]byte("x"), section...), 0); len(got) != 0 {
		t.Errorf("%d bytes of a string that is too long", len(got))
	}
}

// TestForgetAll checks that a table can drop everything it has read.
func TestForgetAll(t *testing.T) {
	tab := newTable(newest().make(), made, func(uint64) string { return "" })
	size := tab.Size()
	want := tab.AppendFrames(nil, madeAddr+0x10)
	if tab.Loaded() == 0 || size <= tab.info.Size() || tab.Size() != size {
		t.Errorf("%d bytes loaded, size %d, before %d", tab.Loaded(), tab.Size(), size)
	}
	tab.Forget()
	if tab.Loaded() != 0 {
		t.Errorf("%d bytes are still loaded", tab.Loaded())
	}
	if got := tab.AppendFrames(nil, madeAddr+0x10); len(got) != len(want) || got[0] != want[0] {
		t.Errorf("frames %+v, before %+v", got, want)
	}
}

package symbol

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lookups returns the names of the given addresses, "-" for none.
func lookups(f *File, addrs ...uint64) string {
	var names []string
	for _, a := range addrs {
		name := "-"
		if s, ok := f.Lookup(a); ok {
			name = s.Name
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestLookup(t *testing.T) {
	const c = codeAddr
	tests := []struct {
		name    string
		symbols []forged
		addrs   []uint64
		want    string
	}{
		{"no symbols", nil, []uint64{0, c, 1<<64 - 1}, "- - -"},
		{
			"sizes bound",
			[]forged{{name: "a", addr: c, size: 16, info: global | fn}, {name: "b", addr: c + 32, size: 16, info: global | fn}},
			[]uint64{c - 1, c, c + 15, c + 16, c + 31, c + 32, c + 47, c + 48},
			"- a a - - b b -",
		},
		{
			"no size: to the next, or the end of the section",
			[]forged{{name: "a", addr: c, info: global | fn}, {name: "b", addr: c + 32, info: local | fn}, {name: "c", addr: tailAddr + 16, info: local | fn}},
			[]uint64{c, c + 31, c + 32, tailAddr - 1, tailAddr, tailAddr + 16, tailAddr + tailSize - 1, tailAddr + tailSize},
			"a a b b - c c -",
		},
		{
			"nested: the inner one, then the outer one again",
			[]forged{
				{name: "outer", addr: c, size: 100, info: global | fn},
				{name: "inner", addr: c + 20, size: 10, info: global | fn},
				{name: "deep", addr: c + 22, size: 2, info: global | fn},
				{name: "second", addr: c + 50, size: 50, info: global | fn},
			},
			[]uint64{c + 19, c + 20, c + 22, c + 24, c + 29, c + 30, c + 49, c + 50, c + 99, c + 100},
			"outer inner deep inner inner outer outer second second -",
		},
		{
			"overlap: the later one, to its own end",
			[]forged{{name: "a", addr: c, size: 20, info: global | fn}, {name: "b", addr: c + 10, size: 20, info: global | fn}},
			[]uint64{c + 9, c + 10, c + 20, c + 29, c + 30},
			"a b b b -",
		},
		{
			"a function without size in one with size owns nothing",
			[]forged{{name: "a", addr: c, size: 40, info: global | fn}, {name: "b", addr: c + 8, info: global | fn}},
			[]uint64{c + 7, c + 8, c + 39, c + 40},
			"a a a -",
		},
		{
			"labels only where no function is",
			[]forged{
				{name: "f", addr: c, size: 16, info: global | fn},
				{name: "in", addr: c + 8, info: global},
				{name: "l1", addr: c + 16, info: global},
				{name: "l2", addr: c + 24, info: local},
				{name: "g", addr: c + 32, size: 8, info: global | fn},
			},
			[]uint64{c + 8, c + 15, c + 16, c + 23, c + 24, c + 31, c + 32, c + 40},
			"f f l1 l1 l2 l2 g -",
		},
		{
			"local labels do not end a function without size, visible ones do",
			[]forged{{name: "f", addr: c, info: local | fn}, {name: "loop", addr: c + 8, info: local}, {name: "g", addr: c + 16, info: global}},
			[]uint64{c, c + 8, c + 15, c + 16},
			"f f f g",
		},
		{
			"data, undefined, empty and absolute names are no functions",
			[]forged{
				{name: "data", addr: c, size: 8, info: global | object},
				{name: "", addr: c + 8, size: 8, info: global | fn},
				{name: "abs", addr: c + 16, info: global, section: uint16(elf.SHN_ABS)},
				{name: "rodata", addr: 0x400100, size: 8, info: global | fn},
				{name: "end", addr: tailAddr + tailSize, info: global},
			},
			[]uint64{c, c + 8, c + 16, 0x400100, tailAddr + tailSize},
			"- - - - -",
		},
		{
			"a size beyond the segment ends there",
			[]forged{{name: "a", addr: tailAddr, size: 1<<64 - 1, info: global | fn}},
			[]uint64{tailAddr, tailAddr + tailSize - 1, tailAddr + tailSize, 1<<64 - 1},
			"a a - -",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := lookups(standard(tt.symbols...).file(t), tt.addrs...); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// Names at one address, the preferred one first.
func TestCanonicalName(t *testing.T) {
	tests := []struct {
		name string
		want []forged // in order of preference; addresses are filled in
	}{
		{"glibc malloc", []forged{{name: "malloc", size: 9, info: global | fn}, {name: "__libc_malloc", size: 9, info: global | fn}, {name: "__malloc", size: 9, info: local | fn}}},
		{"weak without underscores", []forged{{name: "write", size: 9, info: weak | fn}, {name: "__write", size: 9, info: global | fn}}},
		{"strong before weak", []forged{{name: "fopen64", size: 9, info: global | fn}, {name: "fopen", size: 9, info: weak | fn}}},
		{"short before long", []forged{{name: "memalign", size: 9, info: weak | fn}, {name: "aligned_alloc", size: 9, info: weak | fn}}},
		{"bytes at last", []forged{{name: "_ZN1AC1Ev", size: 9, info: weak | fn}, {name: "_ZN1AC2Ev", size: 9, info: weak | fn}}},
		{"mangled names have no decoration", []forged{{name: "_ZN1AC1Ev", size: 9, info: weak | fn}, {name: "_f", size: 9, info: weak | fn}}},
		{"old versions later", []forged{{name: "free", size: 9, info: global | fn}, {name: "cfree@V1", size: 9, info: global | fn}}},
		{"a default version is current", []forged{{name: "zz@@V2", size: 9, info: global | fn}, {name: "a@V1", size: 9, info: global | fn}}},
		{"functions before labels", []forged{{name: "__f", info: local | fn}, {name: "f", info: global}}},
		{"the longest", []forged{{name: "__whole", size: 20, info: local | fn}, {name: "part", size: 9, info: global | fn}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var want []string
			for i := range tt.want {
				tt.want[i].addr = codeAddr
				name, _, _ := strings.Cut(tt.want[i].name, "@")
				want = append(want, name)
			}
			for _, order := range permutations(tt.want) {
				f := standard(order...).file(t)
				var got []string
				for _, s := range f.Aliases(codeAddr) {
					got = append(got, s.Name)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("in order %v: %s", order, diff)
				}
				if s, _ := f.Lookup(codeAddr); s.Name != want[0] {
					t.Errorf("in order %v: %s", order, s.Name)
				}
			}
		})
	}
}

func permutations(list []forged) [][]forged {
	if len(list) < 2 {
		return [][]forged{list}
	}
	var all [][]forged
	for i := range list {
		var rest []forged
		rest = append(append(rest, list[:i]...), list[i+1:]...)
		for _, p := range permutations(rest) {
			all = append(all, append([]forged{list[i]}, p...))
		}
	}
	return all
}

func TestDefined(t *testing.T) {
	f := standard(
		forged{name: "sym", addr: codeAddr + 0x10, size: 1, info: global | fn},
		forged{name: "old@V1", addr: codeAddr + 0x20, size: 1, info: global | fn},
		forged{name: "old@@V2", addr: codeAddr + 0x30, size: 2, info: global | fn},
		forged{name: "priv", addr: codeAddr + 0x40, size: 1, info: local | fn},
		forged{name: "priv", addr: codeAddr + 0x50, size: 2, info: global | fn},
		forged{name: "label", addr: codeAddr + 0x60, info: global},
		forged{name: "gone@V1", addr: codeAddr + 0x70, size: 7, info: global | fn},
	)
	f.dynsym = []forged{
		{name: "cond", addr: codeAddr + 0x80, size: 1, info: global | fn, version: 2 | versionHidden},
		{name: "cond", addr: codeAddr + 0x90, size: 2, info: global | fn, version: 3},
		{name: "pick", addr: codeAddr + 0xa0, size: 3, info: global | ifn, version: 3},
		{name: "sym", addr: codeAddr + 0x10, size: 1, info: global | fn, version: 3},
	}
	file := f.file(t)
	for name, want := range map[string]Symbol{
		"sym":   {Addr: codeAddr + 0x10, Size: 1, Global: true},
		"old":   {Addr: codeAddr + 0x30, Size: 2, Global: true},
		"priv":  {Addr: codeAddr + 0x50, Size: 2, Global: true},
		"label": {Addr: codeAddr + 0x60, Global: true},
		"gone":  {Addr: codeAddr + 0x70, Size: 7, Global: true},
		"cond":  {Addr: codeAddr + 0x90, Size: 2, Global: true},
		"pick":  {Addr: codeAddr + 0xa0, Size: 3, Global: true, IFunc: true},
	} {
		want.Name = name
		got, ok := file.Defined(name)
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%s: found %v %s", name, ok, diff)
		}
		if file.IFunc(got.Addr) != want.IFunc {
			t.Errorf("%s: IFUNC %v", name, file.IFunc(got.Addr))
		}
	}
	for _, name := range []string{"", "sy", "symm", "old@V1", "none"} {
		if s, ok := file.Defined(name); ok {
			t.Errorf("%q is %+v", name, s)
		}
	}
	if got := file.Aliases(codeAddr + 0x10); len(got) != 1 {
		t.Errorf("a symbol of both tables is there %d times: %v", len(got), got)
	}
	if got := file.Functions(); got != 10 {
		t.Errorf("%d functions, want 10", got)
	}
}

func TestClassesAndOrders(t *testing.T) {
	for _, wide := range []bool{false, true} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			t.Run(fmt.Sprint(wide, order), func(t *testing.T) {
				f := &forge{
					wide: wide, order: order, typ: elf.ET_EXEC, machine: elf.EM_MIPS, buildID: []byte{0xab, 0xcd, 0xef, 1},
					symtab: []forged{{name: "a", addr: codeAddr + 4, size: 16, info: global | fn}},
					dynsym: []forged{{name: "b", addr: codeAddr + 32, size: 16, info: weak | fn, version: 2}},
				}
				file := f.file(t)
				class := 32
				if wide {
					class = 64
				}
				if file.Class() != class || file.Type() != elf.ET_EXEC || !file.Fixed() || file.Machine() != elf.EM_MIPS || file.BuildID() != "abcdef01" {
					t.Errorf("class %d, type %v, machine %v, build ID %s", file.Class(), file.Type(), file.Machine(), file.BuildID())
				}
				if got := lookups(file, codeAddr+4, codeAddr+20, codeAddr+33); got != "a - b" {
					t.Error(got)
				}
				want := []Segment{{codeOffset, codeAddr, codeSize + tailSize, codeSize + tailSize}}
				if diff := cmp.Diff(want, file.Segments()); diff != "" {
					t.Error(diff)
				}
				if base, offset, ok := file.Base(); base != 0x400000 || offset != 0 || !ok {
					t.Errorf("base %#x at %#x, %v", base, offset, ok)
				}
			})
		}
	}
}

// Thumb code has bit 0 set; $t and $d mark code and data.
func TestARM(t *testing.T) {
	f := &forge{order: binary.LittleEndian, typ: elf.ET_EXEC, machine: elf.EM_ARM, symtab: []forged{
		{name: "thumb", addr: codeAddr + 0x11, size: 8, info: global | fn}, {name: "$t", addr: codeAddr + 0x20, info: local}, {name: "$d", addr: codeAddr + 0x30, info: local},
	}}
	if got := lookups(f.file(t), codeAddr+0xf, codeAddr+0x10, codeAddr+0x17, codeAddr+0x18, codeAddr+0x20, codeAddr+0x31); got != "- thumb thumb - - -" {
		t.Error(got)
	}
}

func TestOffsets(t *testing.T) {
	f := standard(forged{name: "a", addr: codeAddr, size: 1, info: global | fn})
	f.bare = true
	file := f.file(t)
	for addr, want := range map[uint64]uint64{0x400000: 0, 0x4001ff: 0x1ff, codeAddr: codeOffset, codeAddr + 0x10ff: 0x20ff} {
		if got, ok := file.FileOffset(addr); got != want || !ok {
			t.Errorf("%#x is at offset %#x, %v, want %#x", addr, got, ok, want)
		}
	}
	for _, addr := range []uint64{0, 0x3fffff, 0x400200, codeAddr + 0x1100} {
		if got, ok := file.FileOffset(addr); ok {
			t.Errorf("%#x is at offset %#x, want nowhere", addr, got)
		}
	}
	if got, ok := file.Addr(codeOffset + 5); got != codeAddr+5 || !ok {
		t.Errorf("code at %#x, %v", got, ok)
	}
	if got, ok := file.Addr(5); ok {
		t.Errorf("the header is code at %#x", got)
	}
	if b, err := file.Code(codeAddr+0x10f8, 16); len(b) != 8 || err != nil {
		t.Errorf("%d bytes of code, %v, want 8", len(b), err)
	}
	if _, err := file.Code(0x10, 16); err == nil {
		t.Error("code where nothing is loaded")
	}
}

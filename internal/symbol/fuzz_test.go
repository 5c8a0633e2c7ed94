package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"rtrace-bpf/trace"
)

// seeds returns small files of all classes and byte orders.
func seeds() [][]byte {
	var all [][]byte
	for _, wide := range []bool{false, true} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			f := &forge{
				wide: wide, order: order, typ: elf.ET_DYN, machine: elf.EM_ARM, buildID: []byte{1, 2, 3, 4},
				symtab: []forged{
					{name: "outer", addr: codeAddr, size: 64, info: global | fn},
					{name: "inner", addr: codeAddr + 8, size: 8, info: local | fn},
					{name: "label", addr: codeAddr + 80, info: global},
					{name: "open", addr: codeAddr + 96, info: weak | fn},
				},
				dynsym: []forged{{name: "outer", addr: codeAddr, size: 64, info: global | fn, version: 2}},
			}
			data := f.build()
			// The code, which is all zeros, takes up most of the file. A fuzzer should not
			// spend its time on it.
			all = append(all, data, data[:len(data)/2])
		}
	}
	files, _ := filepath.Glob("testdata/*.elf")
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil {
			all = append(all, data)
		}
	}
	return all
}

func FuzzOpen(f *testing.F) {
	for _, data := range seeds() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := New(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			if _, ok := errors.AsType[*trace.SyntaxError](err); !ok {
				t.Fatalf("error %v is no *trace.SyntaxError", err)
			}
			return
		}
		if err := file.Load(); err != nil {
			if _, ok := errors.AsType[*trace.SyntaxError](err); !ok {
				t.Fatalf("error %v is no *trace.SyntaxError", err)
			}
		}
		check(t, file, len(data))
	})
}

// checkFrames reads the call frame information.
func checkFrames(t *testing.T, f *File, size int) {
	f.Alone()
	f.GOT()
	for _, read := range []func() (Frames, error){f.EHFrame, f.DebugFrame} {
		frames, err := read()
		if _, ok := errors.AsType[*trace.SyntaxError](err); err != nil && !ok {
			t.Fatalf("error %v is no *trace.SyntaxError", err)
		}
		if len(frames.Data) > (maxRatio+1)*size || err != nil && len(frames.Data) > 0 {
			t.Fatalf("%d bytes of call frame information from %d, error %v", len(frames.Data), size, err)
		}
	}
}

// checkDebug reads the debugging information.
func checkDebug(t *testing.T, f *File, size int) {
	const limit = 1 << 20
	all, err := f.DebugSections(limit, ".debug_info", ".debug_abbrev", ".text")
	if _, ok := errors.AsType[*trace.SyntaxError](err); err != nil && !ok {
		t.Fatalf("error %v is no *trace.SyntaxError", err)
	}
	sum := 0
	for _, b := range all {
		sum += len(b)
	}
	if sum > limit || sum > 3*(maxRatio+1)*size {
		t.Fatalf("%d bytes of debugging information from %d", sum, size)
	}
}

// check calls every method of a File and checks what must be true of any file.
func check(t *testing.T, f *File, size int) {
	checkFrames(t, f, size)
	checkDebug(t, f, size)
	s := f.symbols
	if len(s.strings) > 2*size || 16*len(s.entries) > 2*size || len(s.starts) > 2*len(s.entries)+1 || len(s.starts) != len(s.owners) {
		t.Fatalf("%d bytes of names, %d entries and %d spans from %d bytes", len(s.strings), len(s.entries), len(s.starts), size)
	}
	for i := range s.starts {
		if i > 0 && s.starts[i] <= s.starts[i-1] {
			t.Fatalf("spans out of order at %d", i)
		}
		if own := s.owners[i]; own >= 0 && f.Find(s.starts[i]) != int(own) {
			t.Fatalf("span %d is owned by %d, found %d", i, own, f.Find(s.starts[i]))
		}
	}
	for i := range s.entries {
		sym := f.At(i)
		if sym.Name == "" {
			t.Fatal("a function without a name")
		}
		if got, ok := f.Lookup(sym.Addr); ok && got.Size > 0 && sym.Addr-got.Addr >= got.Size {
			t.Fatalf("%#x is in %+v", sym.Addr, got)
		}
		if i > 8 {
			continue
		}
		if def, ok := f.Defined(sym.Name); !ok || def.Name != sym.Name {
			t.Fatalf("%q is defined as %+v, %v", sym.Name, def, ok)
		}
		if len(f.Aliases(sym.Addr)) == 0 || sym.IFunc && !f.IFunc(sym.Addr) {
			t.Fatalf("aliases of %+v are %v", sym, f.Aliases(sym.Addr))
		}
		if code, err := f.Code(sym.Addr, math.MaxUint64); err == nil && len(code) > size {
			t.Fatalf("%d bytes of code from %d", len(code), size)
		}
	}
	for _, seg := range f.Segments() {
		if _, ok := f.Addr(seg.Offset); !ok && seg.FileSize > 0 {
			t.Fatalf("%+v is code but has no address", seg)
		}
		if _, ok := f.FileOffset(seg.Addr); !ok && seg.FileSize > 0 {
			t.Fatalf("%+v is code but has no offset", seg)
		}
		f.Lookup(seg.Addr + seg.MemSize)
	}
	f.Lookup(0)
	f.Lookup(math.MaxUint64)
	f.Defined("")
	if len(f.BuildID()) > 2*maxBuildID || f.Class() != 32 && f.Class() != 64 || f.DebugFile() != "" {
		t.Fatalf("build ID %q, class %d", f.BuildID(), f.Class())
	}
	_, _, _ = f.Base()
	_ = f.Machine()
	_, _, _ = f.debugLink()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestErrors(t *testing.T) {
	good := standard(forged{name: "a", addr: codeAddr, size: 1, info: global | fn})
	change := func(at int, b ...byte) []byte {
		data := good.build()
		copy(data[at:], b)
		return data
	}
	max8 := bytes.Repeat([]byte{0xff}, 8)
	tests := []struct {
		name string
		data []byte
		want error
	}{
		{"empty", nil, trace.ErrTruncated},
		{"short", []byte("\x7fELF\x02\x01"), trace.ErrTruncated},
		{"magic", change(0, 'M', 'Z'), trace.ErrMalformed},
		{"class", change(elf.EI_CLASS, 3), trace.ErrMalformed},
		{"order", change(elf.EI_DATA, 0), trace.ErrMalformed},
		{"header cut", good.build()[:40], trace.ErrTruncated},
		{"segments cut", good.build()[:100], trace.ErrTruncated},
		{"segments far away", change(0x20, max8...), trace.ErrTruncated},
		{"size of a program header", change(0x36, 1), trace.ErrMalformed},
		{"too many segments", change(0x38, 0xff, 0xff), trace.ErrLimit},
		{"segment wraps", change(64+16, max8...), trace.ErrMalformed},
		{"more in the file than in memory", change(64+40, 1, 0, 0, 0, 0, 0, 0, 0), trace.ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(bytes.NewReader(tt.data), int64(len(tt.data)))
			if _, ok := errors.AsType[*trace.SyntaxError](err); !ok || !errors.Is(err, tt.want) {
				t.Errorf("got %v, want a SyntaxError with %v", err, tt.want)
			}
		})
	}
}

// Bad section headers leave a file without names, but its code can still be read.
func TestBadSections(t *testing.T) {
	good := standard(forged{name: "a", addr: codeAddr, size: 1, info: global | fn})
	for name, at := range map[string]int{"far away": 0x28, "count": 0x3c, "size": 0x3a} {
		data := good.build()
		copy(data[at:], "\xff\xff")
		if name == "far away" {
			copy(data[at:], "\xff\xff\xff\xff\xff\xff\xff\x7f")
		}
		file, err := New(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := file.Load(); err != nil || file.Functions() != 0 || len(file.Segments()) != 1 {
			t.Errorf("%s: %d functions, %d segments, %v", name, file.Functions(), len(file.Segments()), err)
		}
	}
}

// A bad symbol table does not hide the names of the other one.
func TestBadTable(t *testing.T) {
	f := standard(forged{name: "a", addr: codeAddr, size: 1, info: global | fn})
	f.dynsym = []forged{{name: "b", addr: codeAddr + 1, size: 1, info: global | fn}}
	data := f.build()
	shoff := binary.LittleEndian.Uint64(data[0x28:])
	copy(data[shoff+3*64+0x20:], "\xff\xff\xff\xff\xff") // size of .symtab
	file, err := New(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Load(); !errors.Is(err, trace.ErrLimit) {
		t.Errorf("error %v, want ErrLimit", err)
	}
	if _, ok := file.Defined("b"); !ok || file.Functions() != 1 {
		t.Errorf("%d functions", file.Functions())
	}
}

// Many names that share one long text must be neither copied nor compared in full.
func TestSharedNames(t *testing.T) {
	const long, count = 1 << 17, 1 << 12
	f := standard(forged{name: string(bytes.Repeat([]byte{'a'}, long)), addr: codeAddr, size: 1, info: global | fn})
	for range count {
		f.symtab = append(f.symtab, forged{name: "", addr: codeAddr, size: 1, info: global | fn})
	}
	data := f.build()
	shoff := binary.LittleEndian.Uint64(data[0x28:])
	symtab := binary.LittleEndian.Uint64(data[shoff+3*64+0x18:])
	for i := range uint64(count) { // each name is an end of the long one
		binary.LittleEndian.PutUint32(data[symtab+(i+2)*24:], uint32(long-maxName/2+i))
	}
	file, err := New(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Load(); err != nil {
		t.Fatal(err)
	}
	if got := file.Functions(); got != count {
		t.Errorf("%d functions, want %d: the one with the longest name is left out", got, count)
	}
	check(t, file, len(data))
}

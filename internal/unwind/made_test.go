package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"rtrace-bpf/internal/symbol"
)

// Offsets of the code and the .eh_frame in a made file.
const (
	codeAddr, codeOffset = 0x401200, 0x200
	codeSize             = 0x200
	frameAddr            = 0x500000
)

// made is an ELF file with a segment of code and an .eh_frame.
type made struct {
	machine elf.Machine
	order   binary.AppendByteOrder
	code    [codeSize]byte
	frames  []byte
	signal  int  // offset of the CIE of signal frames, 0 if there is none
	needs   bool // needs a library
	bare    bool // no section headers but a search table
	begin   uint64
}

// Common entries: augmentation zR with absolute addresses. CFA=rsp+8, ra at c-8; or CFA=sp.
var (
	commonAMD64 = []byte{1, 'z', 'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1}
	commonARM64 = []byte{1, 'z', 'R', 0, 4, 0x78, 30, 1, 0, 0x0c, 31, 0}
	commonI386  = []byte{1, 'z', 'R', 0, 1, 0x7c, 8, 1, 0, 0x0c, 4, 4, 0x88, 1} // CFA=esp+4
)

func newMade(m elf.Machine) *made {
	f := &made{machine: m, order: binary.LittleEndian}
	switch m {
	case elf.EM_AARCH64:
		f.entry(0, commonARM64...)
	case elf.EM_386:
		f.entry(0, commonI386...)
	default:
		f.entry(0, commonAMD64...)
	}
	return f
}

// short reports whether the file is a 32-bit file.
func (f *made) short() bool { return f.machine == elf.EM_386 }

// word appends a number of the size of an address.
func (f *made) word(b []byte, v uint64) []byte {
	if f.short() {
		return f.order.AppendUint32(b, uint32(v))
	}
	return f.order.AppendUint64(b, v)
}

// entry appends an entry; link is the distance to its CIE, or 0 to make a CIE.
func (f *made) entry(link uint32, body ...byte) {
	f.frames = f.order.AppendUint32(f.frames, uint32(len(body)+4))
	f.frames = append(f.order.AppendUint32(f.frames, link), body...)
}

// function adds an FDE for addresses that are relative to the start of the code.
func (f *made) function(start, end int64, program ...byte) { f.functionOf(0, start, end, program...) }

func (f *made) functionOf(cie int, start, end int64, program ...byte) {
	body := append(f.word(f.word(nil, uint64(codeAddr+start)), uint64(end-start)), 0)
	f.entry(uint32(len(f.frames)+4-cie), append(body, program...)...)
}

// signalFunction adds an FDE that is marked as a signal frame.
func (f *made) signalFunction(start, end int64) {
	if f.signal == 0 {
		f.signal = len(f.frames)
		column := byte(16)
		if f.short() {
			column = 8
		}
		f.entry(0, 1, 'z', 'R', 'S', 0, 1, 0x78, column, 1, 0, 0x0c, 7, 8, 0x80|column, 1)
	}
	f.functionOf(f.signal, start, end)
}

// bytes returns the file.
func (f *made) bytes() []byte {
	o := f.order
	body := make([]byte, codeOffset, codeOffset+2*codeSize)
	body = append(body, f.code[:]...)
	frames := uint64(len(body))
	body = append(body, f.frames...)
	body = append(body, make([]byte, -len(body)&7)...)
	header := uint64(len(body))
	body = append(body, 1, 0x1b, 0x03, 0x3b)
	body = o.AppendUint32(body, uint32(frames-header-4))
	body = o.AppendUint32(body, 0) // fewer than there are entries
	dynamic := uint64(len(body))
	tag := elf.DT_SONAME
	if f.needs {
		tag = elf.DT_NEEDED
	}
	body = f.word(f.word(body, uint64(tag)), 1)
	body = append(body, make([]byte, 16)...)
	names := uint64(len(body))
	body = append(body, "\x00.eh_frame\x00\x00\x00\x00\x00\x00\x00"...)
	sections := uint64(len(body))
	section := func(name, typ uint32, addr, offset, size uint64) {
		body = o.AppendUint32(o.AppendUint32(body, name), typ)
		for _, v := range []uint64{uint64(elf.SHF_ALLOC), addr, offset, size} {
			body = f.word(body, v)
		}
		body = f.word(f.word(o.AppendUint64(body, 0), 8), 0)
	}
	count := uint16(0)
	if f.bare {
		sections = 0
	} else {
		count = 3
		section(0, uint32(elf.SHT_NULL), 0, 0, 0)
		section(0, uint32(elf.SHT_STRTAB), 0, names, 11)
		section(1, uint32(elf.SHT_PROGBITS), frameAddr, frames, uint64(len(f.frames)))
	}
	copy(body, f.header(sections, count, frames, header, dynamic, uint64(len(body))))
	return body
}

// header returns the file header and the program headers.
func (f *made) header(sections uint64, count uint16, frames, header, dynamic, size uint64) []byte {
	o := f.order
	data := byte(elf.ELFDATA2LSB)
	if o.String() == "BigEndian" {
		data = byte(elf.ELFDATA2MSB)
	}
	class, sizes := elf.ELFCLASS64, []uint16{64, 56, 4, 64, count, 1}
	if f.short() {
		class, sizes = elf.ELFCLASS32, []uint16{52, 32, 4, 40, count, 1}
	}
	b := append([]byte(elf.ELFMAG), byte(class), data, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = o.AppendUint16(o.AppendUint16(b, uint16(elf.ET_DYN)), uint16(f.machine))
	b = o.AppendUint32(b, 1)
	b = f.word(f.word(f.word(b, f.begin), uint64(sizes[0])), sections)
	b = o.AppendUint32(b, 0)
	for _, v := range sizes {
		b = o.AppendUint16(b, v)
	}
	segment := func(typ elf.ProgType, flags elf.ProgFlag, offset, addr, size uint64) {
		b = o.AppendUint32(b, uint32(typ))
		if !f.short() {
			b = o.AppendUint32(b, uint32(flags))
		}
		for _, v := range []uint64{offset, addr, addr, size, size} {
			b = f.word(b, v)
		}
		if f.short() {
			b = o.AppendUint32(b, uint32(flags))
		}
		b = f.word(b, 8)
	}
	segment(elf.PT_LOAD, elf.PF_R|elf.PF_X, codeOffset, codeAddr, codeSize)
	segment(elf.PT_LOAD, elf.PF_R, frames, frameAddr, size-frames)
	segment(elf.PT_GNU_EH_FRAME, elf.PF_R, header, frameAddr+header-frames, 12)
	segment(elf.PT_DYNAMIC, elf.PF_R, dynamic, frameAddr+dynamic-frames, uint64(len(f.word(nil, 0)))*4)
	return b
}

// build builds the table of the file.
func (f *made) build(t testing.TB) (*Table, error) {
	t.Helper()
	return buildBytes(t, f.bytes())
}

func buildBytes(t testing.TB, data []byte) (*Table, error) {
	t.Helper()
	file, err := symbol.New(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return Build(file)
}

// table is build for files that are valid.
func (f *made) table(t testing.TB) *Table {
	t.Helper()
	table, err := f.build(t)
	if err != nil {
		t.Fatal(err)
	}
	if err := invalid(table); err != nil {
		t.Fatal(err)
	}
	return table
}

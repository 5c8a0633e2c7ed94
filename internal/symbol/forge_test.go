package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"
)

// forge makes ELF files with the tables that a test needs. They have one data and one code
// segment, a code section of 0x1000 bytes at 0x401000 and a following one of 0x100 bytes at
// 0x402000.
type forge struct {
	wide    bool
	order   binary.AppendByteOrder
	typ     elf.Type
	machine elf.Machine
	symtab  []forged
	dynsym  []forged
	buildID []byte
	bare    bool // no section headers
}

// forged is a symbol. Its section is derived from its address unless it is set.
type forged struct {
	name    string
	addr    uint64
	size    uint64
	info    byte
	version uint16 // .dynsym only
	section uint16
}

const (
	global = byte(elf.STB_GLOBAL) << 4
	weak   = byte(elf.STB_WEAK) << 4
	local  = byte(elf.STB_LOCAL) << 4
	fn     = byte(elf.STT_FUNC)
	ifn    = byte(elf.STT_GNU_IFUNC)
	object = byte(elf.STT_OBJECT)
)

// Addresses in a forged file.
const (
	codeAddr, codeOffset, codeSize = 0x401000, 0x1000, 0x1000
	tailAddr, tailSize             = 0x402000, 0x100
)

func (f *forge) word(b []byte, v uint64) []byte {
	if f.wide {
		return f.order.AppendUint64(b, v)
	}
	return f.order.AppendUint32(b, uint32(v))
}

// table returns a symbol table and its names.
func (f *forge) table(list []forged) (symbols, names, versions []byte) {
	names = []byte{0}
	add := func(name uint32, s forged) {
		symbols = f.order.AppendUint32(symbols, name)
		if !f.wide {
			symbols = f.word(f.word(symbols, s.addr), s.size)
		}
		symbols = append(symbols, s.info, 0)
		symbols = f.order.AppendUint16(symbols, s.section)
		if f.wide {
			symbols = f.word(f.word(symbols, s.addr), s.size)
		}
		versions = f.order.AppendUint16(versions, s.version)
	}
	add(0, forged{})
	for _, s := range list {
		if s.section == 0 {
			s.section = 1
			if s.addr >= tailAddr {
				s.section = 2
			}
		}
		add(uint32(len(names)), s)
		names = append(append(names, s.name...), 0)
	}
	return symbols, names, versions
}

// build returns the file.
func (f *forge) build() []byte {
	type part struct {
		typ        elf.SectionType
		flags      uint64
		addr       uint64
		data       []byte
		link       uint32
		at, length uint64
	}
	symtab, strtab, _ := f.table(f.symtab)
	dynsym, dynstr, versym := f.table(f.dynsym)
	exec := uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR)
	parts := []part{
		{},
		{typ: elf.SHT_PROGBITS, flags: exec, addr: codeAddr, at: codeOffset, length: codeSize},
		{typ: elf.SHT_PROGBITS, flags: exec, addr: tailAddr, at: codeOffset + codeSize, length: tailSize},
	}
	if f.symtab != nil {
		parts = append(parts, part{typ: elf.SHT_SYMTAB, data: symtab, link: uint32(len(parts) + 1)}, part{typ: elf.SHT_STRTAB, data: strtab})
	}
	if f.dynsym != nil {
		n := uint32(len(parts))
		parts = append(parts, part{typ: elf.SHT_DYNSYM, data: dynsym, link: n + 1}, part{typ: elf.SHT_STRTAB, data: dynstr},
			part{typ: elf.SHT_GNU_VERSYM, data: versym, link: n})
	}
	if f.buildID != nil {
		note := f.order.AppendUint32(nil, 4)
		note = f.order.AppendUint32(note, uint32(len(f.buildID)))
		note = append(append(f.order.AppendUint32(note, noteBuildID), "GNU\x00"...), f.buildID...)
		parts = append(parts, part{typ: elf.SHT_NOTE, data: note})
	}
	body := make([]byte, codeOffset+codeSize+tailSize)
	for i := range parts {
		if p := &parts[i]; p.data != nil {
			for len(body)%8 != 0 {
				body = append(body, 0)
			}
			p.at, p.length = uint64(len(body)), uint64(len(p.data))
			body = append(body, p.data...)
		}
	}
	for len(body)%8 != 0 {
		body = append(body, 0)
	}
	shoff := uint64(len(body))
	for _, p := range parts {
		body = f.order.AppendUint32(f.order.AppendUint32(body, 0), uint32(p.typ))
		body = f.word(f.word(f.word(f.word(body, p.flags), p.addr), p.at), p.length)
		body = f.order.AppendUint32(f.order.AppendUint32(body, p.link), 0)
		body = f.word(f.word(body, 8), 0)
	}
	shnum := uint16(len(parts))
	if f.bare {
		body, shoff, shnum = body[:shoff], 0, 0
	}
	head := append([]byte(elf.ELFMAG), 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	sizes := [3]uint16{52, 32, 40}
	if f.wide {
		head[elf.EI_CLASS] = byte(elf.ELFCLASS64)
		sizes = [3]uint16{64, 56, 64}
	}
	if f.order.String() == "BigEndian" {
		head[elf.EI_DATA] = byte(elf.ELFDATA2MSB)
	}
	head = f.order.AppendUint16(f.order.AppendUint16(head, uint16(f.typ)), uint16(f.machine))
	head = f.word(f.word(f.word(f.order.AppendUint32(head, 1), codeAddr), uint64(sizes[0])), shoff)
	head = f.order.AppendUint32(head, 0)
	for _, v := range []uint16{sizes[0], sizes[1], 2, sizes[2], shnum, 0} {
		head = f.order.AppendUint16(head, v)
	}
	head = f.segment(head, elf.PF_R, 0, 0x400000, 0x200)
	head = f.segment(head, elf.PF_R|elf.PF_X, codeOffset, codeAddr, codeSize+tailSize)
	copy(body, head)
	return body
}

func (f *forge) segment(b []byte, flags elf.ProgFlag, offset, addr, size uint64) []byte {
	b = f.order.AppendUint32(b, uint32(elf.PT_LOAD))
	if f.wide {
		b = f.order.AppendUint32(b, uint32(flags))
	}
	b = f.word(f.word(f.word(f.word(f.word(b, offset), addr), addr), size), size)
	if !f.wide {
		b = f.order.AppendUint32(b, uint32(flags))
	}
	return f.word(b, 0x1000)
}

// standard is a 64-bit little-endian file with the given .symtab.
func standard(symtab ...forged) *forge {
	return &forge{wide: true, order: binary.LittleEndian, typ: elf.ET_DYN, machine: elf.EM_X86_64, symtab: symtab}
}

// file opens the forged file.
func (f *forge) file(t testing.TB) *File {
	t.Helper()
	data := f.build()
	file, err := New(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Load(); err != nil {
		t.Fatal(err)
	}
	return file
}

package symbol

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"rtrace-bpf/trace"
)

// Limits of what is read from a file, whatever its size.
const (
	maxSegments = 1 << 12
	maxSections = 1 << 16 // linkers make a few dozen
	maxSymbols  = 1 << 24 // in one table
	maxStrings  = 1 << 28 // bytes of one string table, because a sparse file of any size costs its owner nothing
	maxTitles   = 1 << 20 // bytes of the names of all sections
	maxHash     = 1 << 26 // bytes of a hash table of symbols
	maxNotes    = 1 << 20 // bytes of one note section
	maxDynamic  = 1 << 16 // bytes of the dynamic segment
)

// image is the structure of an ELF file: its headers, and access to its bytes.
type image struct {
	r        io.ReaderAt
	size     uint64
	order    binary.ByteOrder
	wide     bool // ELFCLASS64
	typ      elf.Type
	machine  elf.Machine
	entry    uint64
	segments []segment
	sections []section
	names    []byte // of the sections
}

type segment struct {
	typ                         elf.ProgType
	flags                       elf.ProgFlag
	offset, addr, filesz, memsz uint64
	align                       uint64
}

// code reports whether the segment is loaded as code.
func (s *segment) code() bool {
	return s.typ == elf.PT_LOAD && s.flags&elf.PF_X != 0
}

// fail returns a *trace.SyntaxError for the given place of the file.
func fail(offset uint64, err error, what string) error {
	return &trace.SyntaxError{Format: "elf", Offset: int64(offset), Err: fmt.Errorf("%s: %w", what, err)}
}

// open reads the headers of an ELF file of the given size. Section headers that make no
// sense are ignored, because the kernel does not need them.
func open(r io.ReaderAt, size int64) (*image, error) {
	img := &image{r: r, size: uint64(max(size, 0))}
	ident, err := img.read(0, elf.EI_NIDENT, elf.EI_NIDENT, "identification")
	if err != nil {
		return nil, err
	}
	if string(ident[:4]) != elf.ELFMAG {
		return nil, fail(0, trace.ErrMalformed, "magic number")
	}
	switch elf.Class(ident[elf.EI_CLASS]) {
	case elf.ELFCLASS32:
	case elf.ELFCLASS64:
		img.wide = true
	default:
		return nil, fail(elf.EI_CLASS, trace.ErrMalformed, "class")
	}
	switch elf.Data(ident[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
		img.order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		img.order = binary.BigEndian
	default:
		return nil, fail(elf.EI_DATA, trace.ErrMalformed, "byte order")
	}
	headSize := uint64(52) // sizeof(Elf32_Ehdr)
	if img.wide {
		headSize = 64 // sizeof(Elf64_Ehdr)
	}
	b, err := img.read(0, headSize, headSize, "file header")
	if err != nil {
		return nil, err
	}
	c := img.cursor(b[elf.EI_NIDENT:])
	img.typ, img.machine = elf.Type(c.u16()), elf.Machine(c.u16())
	c.u32() // version
	img.entry = c.word()
	phoff, shoff := c.word(), c.word()
	c.u32() // flags
	c.u16() // size of this header
	phentsize, phnum := c.u16(), c.u16()
	shentsize, shnum, shstrndx := c.u16(), c.u16(), c.u16()
	if err := img.readSegments(phoff, phentsize, phnum); err != nil {
		return nil, err
	}
	if err := img.readSections(shoff, shentsize, shnum, shstrndx); err != nil {
		if _, ok := errors.AsType[*trace.SyntaxError](err); !ok {
			return nil, err
		}
		img.sections, img.names = nil, nil
	}
	return img, nil
}

// read returns n bytes at off. More than limit bytes are an error.
func (img *image) read(off, n, limit uint64, what string) ([]byte, error) {
	if off > img.size || n > img.size-off {
		return nil, fail(off, trace.ErrTruncated, what)
	}
	if n > limit {
		return nil, fail(off, trace.ErrLimit, what)
	}
	b := make([]byte, n)
	if err := img.readInto(b, off, what); err != nil {
		return nil, err
	}
	return b, nil
}

func (img *image) readInto(b []byte, off uint64, what string) error {
	if n, err := img.r.ReadAt(b, int64(off)); n < len(b) {
		if err == io.EOF {
			return fail(off, trace.ErrTruncated, what) // the file shrank
		}
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (img *image) readSegments(off uint64, entsize, count uint16) error {
	if count == 0 {
		return nil
	}
	want := uint16(32) // sizeof(Elf32_Phdr)
	if img.wide {
		want = 56 // sizeof(Elf64_Phdr)
	}
	if entsize != want {
		return fail(off, trace.ErrMalformed, "size of a program header")
	}
	if count > maxSegments {
		return fail(off, trace.ErrLimit, "count of program headers")
	}
	b, err := img.read(off, uint64(count)*uint64(want), 1<<32, "program headers")
	if err != nil {
		return err
	}
	img.segments = make([]segment, 0, count)
	c := img.cursor(b)
	for i := range uint64(count) {
		s := segment{typ: elf.ProgType(c.u32())}
		if img.wide {
			s.flags = elf.ProgFlag(c.u32())
		}
		s.offset, s.addr = c.word(), c.word()
		c.word() // physical address
		s.filesz, s.memsz = c.word(), c.word()
		if !img.wide {
			s.flags = elf.ProgFlag(c.u32())
		}
		s.align = c.word()
		if s.typ == elf.PT_LOAD && (s.filesz > s.memsz || s.addr+s.memsz < s.addr || s.offset+s.filesz < s.offset) {
			return fail(off+i*uint64(want), trace.ErrMalformed, "bounds of a segment")
		}
		img.segments = append(img.segments, s)
	}
	return nil
}

func (img *image) readSections(off uint64, entsize, count, names uint16) error {
	if off == 0 {
		return nil
	}
	want := uint64(40) // sizeof(Elf32_Shdr)
	if img.wide {
		want = 64 // sizeof(Elf64_Shdr)
	}
	if uint64(entsize) != want {
		return fail(off, trace.ErrMalformed, "size of a section header")
	}
	n, nameIndex := uint64(count), uint32(names)
	if n == 0 || names == uint16(elf.SHN_XINDEX) { // the first section header holds the counts that do not fit into the file header
		b, err := img.read(off, want, want, "section header")
		if err != nil {
			return err
		}
		first := img.section(img.cursor(b))
		if n == 0 {
			n = first.size
		}
		if names == uint16(elf.SHN_XINDEX) {
			nameIndex = first.link
		}
	}
	if n > maxSections {
		return fail(off, trace.ErrLimit, "count of section headers")
	}
	b, err := img.read(off, n*want, 1<<32, "section headers")
	if err != nil {
		return err
	}
	img.sections = make([]section, n)
	c := img.cursor(b)
	for i := range img.sections {
		img.sections[i] = img.section(c)
	}
	if uint64(nameIndex) < n {
		if s := &img.sections[nameIndex]; s.stored() {
			img.names, err = s.read(maxTitles, "section names")
		}
	}
	return err
}

func (img *image) section(c *cursor) section {
	s := section{img: img, name: c.u32(), typ: elf.SectionType(c.u32())}
	s.flags = elf.SectionFlag(c.word())
	s.addr, s.offset, s.size = c.word(), c.word(), c.word()
	s.link, s.info = c.u32(), c.u32()
	s.align, s.entsize = c.word(), c.word()
	return s
}

// named returns the first section with the given name, or nil.
func (img *image) named(name string) *section {
	for i := range img.sections {
		s := &img.sections[i]
		if at := uint64(s.name); at+uint64(len(name)) < uint64(len(img.names)) &&
			string(img.names[at:at+uint64(len(name))]) == name && img.names[at+uint64(len(name))] == 0 {
			return s
		}
	}
	return nil
}

// has reports whether the file stores a section of the given type.
func (img *image) has(typ elf.SectionType) bool {
	for i := range img.sections {
		if s := &img.sections[i]; s.typ == typ && s.stored() {
			return true
		}
	}
	return false
}

// offset returns the file offset of the byte that is loaded at addr, and how many bytes of
// the segment follow it.
func (img *image) offset(addr uint64) (off, rest uint64, ok bool) {
	for i := range img.segments {
		s := &img.segments[i]
		if s.typ == elf.PT_LOAD && addr >= s.addr && addr-s.addr < s.filesz {
			return s.offset + (addr - s.addr), s.filesz - (addr - s.addr), true
		}
	}
	return 0, 0, false
}

// symbolSize is sizeof(Elf64_Sym) or sizeof(Elf32_Sym).
func (img *image) symbolSize() uint64 {
	if img.wide {
		return 24
	}
	return 16
}

// cursor reads numbers from a slice that is known to be long enough.
type cursor struct {
	b     []byte
	order binary.ByteOrder
	wide  bool
}

func (img *image) cursor(b []byte) *cursor {
	return &cursor{b, img.order, img.wide}
}

func (c *cursor) u16() uint16 {
	v := c.order.Uint16(c.b)
	c.b = c.b[2:]
	return v
}

func (c *cursor) u32() uint32 {
	v := c.order.Uint32(c.b)
	c.b = c.b[4:]
	return v
}

// word reads a number of the file's word size.
func (c *cursor) word() uint64 {
	if !c.wide {
		return uint64(c.u32())
	}
	v := c.order.Uint64(c.b)
	c.b = c.b[8:]
	return v
}

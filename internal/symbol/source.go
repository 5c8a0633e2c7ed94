package symbol

import (
	"debug/elf"
	"math"

	"rtrace-bpf/trace"
)

// source is the place of a symbol table, and of what belongs to it, in a file.
type source struct {
	img               *image
	offset, count     uint64 // the symbols
	strings, nstrings uint64 // their names, bytes
	versions          uint64 // .gnu.version: two bytes per symbol; 0 if there is none
	dynamic           bool   // .dynsym
}

// sources returns the symbol tables of a file, .dynsym first.
func sources(img *image) []source {
	var found []source
	for _, typ := range []elf.SectionType{elf.SHT_DYNSYM, elf.SHT_SYMTAB} {
		for i := range img.sections {
			if s := &img.sections[i]; s.typ == typ && s.stored() {
				if src, ok := sectionSource(uint32(i), s); ok {
					found = append(found, src)
				}
				break // the format allows one of each
			}
		}
	}
	if len(found) == 0 {
		if d, ok := readDynamic(img); ok {
			if src, ok := d.source(); ok {
				found = append(found, src)
			}
		}
	}
	return found
}

// sectionSource returns the symbol table in a section with the given number.
func sectionSource(index uint32, s *section) (source, bool) {
	img := s.img
	if uint64(s.link) >= uint64(len(img.sections)) || s.entsize != 0 && s.entsize != img.symbolSize() {
		return source{}, false
	}
	names := &img.sections[s.link]
	if names.typ != elf.SHT_STRTAB || !names.stored() {
		return source{}, false
	}
	src := source{
		img: img, offset: s.offset, count: s.size / img.symbolSize(), strings: names.offset, nstrings: names.size,
		dynamic: s.typ == elf.SHT_DYNSYM,
	}
	for i := range img.sections {
		v := &img.sections[i]
		if v.typ == elf.SHT_GNU_VERSYM && v.link == index && v.stored() && v.size/2 >= src.count {
			src.versions = v.offset
		}
	}
	return src, true
}

// check checks the bounds of the symbols against the file and the limits.
func (src *source) check() error {
	if src.count > maxSymbols {
		return fail(src.offset, trace.ErrLimit, "count of symbols")
	}
	if src.offset > src.img.size || src.count*src.img.symbolSize() > src.img.size-src.offset {
		return fail(src.offset, trace.ErrTruncated, "symbol table")
	}
	return nil
}

// checkNames checks the bounds of the names against the file and the limits. others is the
// size of the names of other tables in bytes; all together have a limit.
func (src *source) checkNames(others uint64) error {
	if src.strings > src.img.size || src.nstrings > src.img.size-src.strings {
		return fail(src.strings, trace.ErrTruncated, "symbol names")
	}
	if src.nstrings > maxStrings || others+src.nstrings > math.MaxUint32 {
		return fail(src.strings, trace.ErrLimit, "symbol names")
	}
	return nil
}

// readNames reads the names into b, which has room for them.
func (src *source) readNames(b []byte) error {
	return src.img.readInto(b, src.strings, "symbol names")
}

// each calls yield for each symbol, with its number. It reads the symbols in batches.
func (src *source) each(yield func(i uint64, raw rawSymbol)) error {
	const batch = 1 << 12
	size := src.img.symbolSize()
	buf := make([]byte, min(src.count, batch)*size)
	for i := uint64(0); i < src.count; i += batch {
		n := min(batch, src.count-i)
		chunk := buf[:n*size]
		if err := src.img.readInto(chunk, src.offset+i*size, "symbol table"); err != nil {
			return err
		}
		c := src.img.cursor(chunk)
		for k := range n {
			yield(i+k, readSymbol(c))
		}
	}
	return nil
}

// rawSymbol is an Elf_Sym.
type rawSymbol struct {
	name        uint32
	info        uint8
	index       elf.SectionIndex
	value, size uint64
}

func readSymbol(c *cursor) (s rawSymbol) {
	s.name = c.u32()
	if !c.wide {
		s.value, s.size = c.word(), c.word()
	}
	s.info = c.b[0] // and st_other
	c.b = c.b[2:]
	s.index = elf.SectionIndex(c.u16())
	if c.wide {
		s.value, s.size = c.word(), c.word()
	}
	return s
}

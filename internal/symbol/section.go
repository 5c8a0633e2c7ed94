package symbol

import "debug/elf"

// section is a part of the file that has a section header.
type section struct {
	img                *image
	name               uint32
	typ                elf.SectionType
	flags              elf.SectionFlag
	addr, offset, size uint64
	link, info         uint32
	align, entsize     uint64
}

// stored reports whether the file contains the section's bytes.
func (s *section) stored() bool {
	return s.typ != elf.SHT_NOBITS && s.typ != elf.SHT_NULL && s.flags&elf.SHF_COMPRESSED == 0
}

// read returns the bytes of the section as they are stored. More than limit bytes are an
// error.
func (s *section) read(limit uint64, what string) ([]byte, error) {
	return s.img.read(s.offset, s.size, limit, what)
}

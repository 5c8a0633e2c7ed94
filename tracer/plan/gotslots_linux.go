package plan

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"rtrace-bpf/tracer/site"
)

// slots tells which function the pointers of a library's GOT lead to. Calls
// within a library that may be interposed go through them, so that reallocarray
// of glibc jumps to realloc by way of a PLT stub and such a pointer.
type slots map[uint64]string

// readSlots reads the relocations of the file at path.
func readSlots(path string) (slots, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read relocations of %s: %w", path, err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, nil // none: nothing can be interposed
	}
	s := slots{}
	for _, section := range f.Sections {
		r, ok := relocationKinds[section.Type]
		if !ok || r.class != f.Class {
			continue
		}
		b, err := section.Data()
		if err != nil {
			return nil, fmt.Errorf("read relocations of %s: %w", path, err)
		}
		for ; len(b) >= r.size; b = b[r.size:] {
			if slot, n := r.read(b); n > 0 && n <= uint64(len(symbols)) {
				s[slot] = symbols[n-1].Name
			}
		}
	}
	return s, nil
}

// relocations is a form of relocations: its size in bytes, and what one has the
// address and the number of the symbol of.
type relocations struct {
	class elf.Class
	size  int
	read  func(b []byte) (slot, symbol uint64)
}

// relocationKinds are those of the machines that can be traced.
var relocationKinds = map[elf.SectionType]relocations{
	elf.SHT_RELA: {elf.ELFCLASS64, 24, func(b []byte) (slot, symbol uint64) {
		return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]) >> 32
	}},
	elf.SHT_REL: {elf.ELFCLASS32, 8, func(b []byte) (slot, symbol uint64) {
		return uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]) >> 8)
	}},
}

// through names the function that the PLT stub at addr, whose code is given,
// leads to.
func (c *code) through(addr uint64, code []byte) (string, bool) {
	slot, ok := site.Stub(c.sites(), code, addr)
	if !ok {
		return "", false
	}
	name, ok := c.slots[slot]
	return name, ok
}

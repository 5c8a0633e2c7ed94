package plan

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// slots holds the names of the functions that the pointers in a library's GOT lead to, by
// the pointers' addresses in the file. Calls within a library that can be interposed go
// through these pointers: glibc's reallocarray jumps to realloc through a PLT stub and such
// a pointer.
type slots map[uint64]string

// readSlots reads the slots from the relocations of the file at path. It returns nil,
// without an error, for a file without dynamic symbols.
func readSlots(path string) (slots, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read relocations of %s: %w", path, err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, nil // no dynamic symbols: nothing can be interposed
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

// relocations describes a format of relocations: the bytes of one, and how to read the
// address of its slot and the number of its symbol.
type relocations struct {
	class elf.Class
	size  int
	read  func(b []byte) (slot, symbol uint64)
}

// relocationKinds holds the formats of the machines that can be traced, by type of section.
var relocationKinds = map[elf.SectionType]relocations{
	elf.SHT_RELA: {elf.ELFCLASS64, 24, func(b []byte) (slot, symbol uint64) {
		return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]) >> 32
	}},
	elf.SHT_REL: {elf.ELFCLASS32, 8, func(b []byte) (slot, symbol uint64) {
		return uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]) >> 8)
	}},
}

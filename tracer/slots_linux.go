package tracer

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

// relocationSize is the size of Elf64_Rela.
const relocationSize = 24

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
		if section.Type != elf.SHT_RELA {
			continue
		}
		b, err := section.Data()
		if err != nil {
			return nil, fmt.Errorf("read relocations of %s: %w", path, err)
		}
		for ; len(b) >= relocationSize; b = b[relocationSize:] {
			info := binary.LittleEndian.Uint64(b[8:])
			if n := info >> 32; n > 0 && n <= uint64(len(symbols)) {
				s[binary.LittleEndian.Uint64(b)] = symbols[n-1].Name
			}
		}
	}
	return s, nil
}

// through names the function that the PLT stub at addr, whose code is given,
// leads to.
func (s slots) through(addr uint64, code []byte) (string, bool) {
	slot, ok := site.Stub(siteOptions().Arch, code, addr)
	if !ok {
		return "", false
	}
	name, ok := s[slot]
	return name, ok
}

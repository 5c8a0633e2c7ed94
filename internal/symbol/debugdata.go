package symbol

import (
	"bytes"
	"debug/elf"

	"rtrace-bpf/internal/xz"
)

// Limits of .gnu_debugdata, which is about a tenth of the size of the code.
const (
	maxPackedData = 1 << 26 // bytes as stored
	maxDebugData  = 1 << 28 // bytes unpacked
)

// debugData returns the ELF file in .gnu_debugdata, which is packed with xz. Fedora puts
// the symbols that are not in .dynsym there. It returns nil if there is none, or if the
// file has a symbol table.
func (f *File) debugData() *image {
	s := f.named(".gnu_debugdata")
	if s == nil || !s.stored() || f.has(elf.SHT_SYMTAB) {
		return nil
	}
	packed, err := s.read(maxPackedData, "symbols in .gnu_debugdata")
	if err != nil {
		return nil
	}
	data, err := xz.Unpack(packed, min(maxDebugData, maxRatio*len(packed)))
	if err != nil {
		return nil
	}
	img, err := open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil
	}
	return img
}

package symbol

import (
	"bytes"
	"debug/elf"

	"rtrace-bpf/internal/xz"
)

// Limits of .gnu_debugdata, which has a tenth of the size of the code.
const (
	maxPackedData = 1 << 26 // bytes as stored
	maxDebugData  = 1 << 28 // bytes unpacked
)

// debugData returns the ELF file that is stored in .gnu_debugdata, packed by xz:
// Fedora puts the symbols there that are not in .dynsym. It returns nil if there
// is none, or the file has a symbol table.
func (f *File) debugData() *image {
	s := f.image.named(".gnu_debugdata")
	if s == nil || !s.stored() || f.image.has(elf.SHT_SYMTAB) {
		return nil
	}
	packed, err := f.image.read(s.offset, s.size, maxPackedData, "symbols in .gnu_debugdata")
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

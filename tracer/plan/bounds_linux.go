package plan

import (
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/unwind/cfi"
)

// maxFunction is the most bytes of a function that are looked at.
const maxFunction = 64 << 10

// bounds knows where the functions of a file begin and end.
type bounds struct {
	file   *symbol.File
	frames *cfi.Index // call frame information; nil if the file has none. See index
	read   bool       // frames was set
}

// around returns the bounds of the function that contains addr, from the call frame
// information or else the symbols.
func (b *bounds) around(addr uint64) (start, end uint64, ok bool) {
	if index := b.index(); index != nil {
		if fde, ok := index.Find(addr); ok {
			return fde.Start, fde.End, true
		}
	}
	sym, ok := b.file.Lookup(addr)
	return sym.Addr, sym.Addr + sym.Size, ok && sym.Size > 0 && sym.Size < maxFunction
}

// index returns the call frame information of the file, or nil if it has none. It is read at
// the first call.
func (b *bounds) index() *cfi.Index {
	if !b.read {
		b.read = true
		if sections, err := cfi.Sections(b.file); err == nil {
			b.frames, _ = cfi.NewIndex(sections...) // broken entries are not the allocator's
		}
	}
	return b.frames
}

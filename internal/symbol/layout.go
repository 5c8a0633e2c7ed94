package symbol

import (
	"debug/elf"
	"fmt"
	"os"

	"rtrace-bpf/trace"
)

// maxCode is the most bytes of code that are read at once.
const maxCode = 1 << 24

// Segment is a part of the file that is loaded as code (PT_LOAD with PF_X).
type Segment struct {
	Offset   uint64 // in the file
	Addr     uint64 // before the load bias is added
	FileSize uint64 // bytes in the file
	MemSize  uint64 // bytes in memory, not less than FileSize
}

// Bias returns the load bias of a file with these segments, given that the file is mapped
// from start to end with offset as its first byte. If segments share a page of the file,
// the one that begins in the first page of the mapping decides.
func Bias(segments []Segment, start, end, offset uint64) uint64 {
	page := uint64(os.Getpagesize())
	for _, s := range segments {
		if s.Offset&^(page-1) == offset {
			return start - offset + s.Offset - s.Addr
		}
	}
	for _, s := range segments {
		if offset+(end-start) > s.Offset && offset < s.Offset+s.FileSize {
			return start - offset + s.Offset - s.Addr
		}
	}
	return start - offset
}

// Segments returns the parts that are loaded as code, in the file's order.
func (img *image) Segments() []Segment {
	var code []Segment
	for i := range img.segments {
		if s := &img.segments[i]; s.code() {
			code = append(code, Segment{s.offset, s.addr, s.filesz, s.memsz})
		}
	}
	return code
}

// Base returns the lowest address at which the file is loaded, before the load bias is
// added and not rounded to a page, and the file offset there.
func (img *image) Base() (addr, offset uint64, ok bool) {
	for i := range img.segments {
		if s := &img.segments[i]; s.typ == elf.PT_LOAD && (!ok || s.addr < addr) {
			addr, offset, ok = s.addr, s.offset, true
		}
	}
	return addr, offset, ok
}

// End returns the address after the last byte at which the file is loaded, before the load bias is
// added, including memory beyond the end of the file's data. It is 0 if nothing is loaded.
func (img *image) End() (addr uint64) {
	for i := range img.segments {
		if s := &img.segments[i]; s.typ == elf.PT_LOAD {
			addr = max(addr, s.addr+s.memsz)
		}
	}
	return addr
}

// FileOffset returns the file offset of the byte that is loaded at addr.
func (img *image) FileOffset(addr uint64) (uint64, bool) {
	off, _, ok := img.offset(addr)
	return off, ok
}

// Addr returns the address at which the byte at the given file offset is loaded as code.
func (img *image) Addr(offset uint64) (uint64, bool) {
	for i := range img.segments {
		if s := &img.segments[i]; s.code() && offset >= s.offset && offset-s.offset < s.filesz {
			return s.addr + (offset - s.offset), true
		}
	}
	return 0, false
}

// Code returns the n bytes that are loaded at addr, or fewer if the segment ends earlier.
// The caller owns them. The file must be open.
func (img *image) Code(addr, n uint64) ([]byte, error) {
	off, rest, ok := img.offset(addr)
	if !ok {
		return nil, fail(0, trace.ErrMalformed, fmt.Sprintf("nothing is loaded at %#x", addr))
	}
	return img.read(off, min(n, rest), maxCode, "code")
}

// Dynamic returns the address of the dynamic segment, before the load bias is added, and
// its size in bytes. A static program may have none.
func (img *image) Dynamic() (addr, size uint64, ok bool) {
	for i := range img.segments {
		if s := &img.segments[i]; s.typ == elf.PT_DYNAMIC {
			return s.addr, s.filesz, true
		}
	}
	return 0, 0, false
}

// Protected reports whether the file has data that its loader makes read-only after
// relocation.
func (img *image) Protected() bool {
	for i := range img.segments {
		if s := &img.segments[i]; s.typ == elf.PT_GNU_RELRO && s.memsz > 0 {
			return true
		}
	}
	return false
}

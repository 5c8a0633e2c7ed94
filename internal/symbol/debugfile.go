package symbol

import (
	"bytes"
	"debug/elf"
	"hash/crc32"
	"io"
	"path"
)

// debugFile is a separate debug file that was found to belong to a File.
type debugFile struct {
	*image
	closer io.Closer
	path   string
}

// openDebug opens the separate debug file, or returns nil if there is none. For symbols it
// looks for one only if the file has no symbol table of its own or has a debug link. The
// build ID or the checksum must match.
func (f *File) openDebug(forSymbols bool) *debugFile {
	if f.path == "" {
		return nil
	}
	link, sum, linked := f.image.debugLink()
	if forSymbols && !linked && f.image.has(elf.SHT_SYMTAB) {
		return nil
	}
	if len(f.buildID) > 2 {
		for _, name := range f.places.byBuildID(f.buildID, debugSuffix) {
			if d := f.try(name); d.belongs(f) {
				return d
			}
		}
	}
	if linked {
		for _, name := range f.places.linked(path.Dir(f.path), link) {
			if d := f.try(name); d != nil {
				if got, ok := d.checksum(); ok && got == sum {
					return d
				}
				d.closer.Close()
			}
		}
	}
	if f.places.Fetch != nil && len(f.buildID) > 2 && !f.Detached() {
		if d := f.try(f.places.Fetch(f.buildID, true)); d.belongs(f) {
			return d
		}
	}
	return nil
}

// belongs reports whether d, a file that was found by build ID, is the debug file of f, and
// closes it if it is not. d may be nil.
func (d *debugFile) belongs(f *File) bool {
	if d == nil {
		return false
	}
	if d.buildID() == f.buildID {
		return true
	}
	d.closer.Close()
	return false
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

// debugLink returns the name and CRC-32 of the debug file from .gnu_debuglink:
// a string, padding to four bytes, and the checksum.
func (img *image) debugLink() (name string, sum uint32, ok bool) {
	s := img.named(".gnu_debuglink")
	if s == nil || !s.stored() {
		return "", 0, false
	}
	b, err := img.read(s.offset, s.size, 1<<12, "debug link")
	if err != nil {
		return "", 0, false
	}
	end := bytes.IndexByte(b, 0)
	at := int(roundUp(uint64(end+1), 4))
	if end <= 0 || at+4 > len(b) || bytes.IndexByte(b[:end], '/') >= 0 {
		return "", 0, false
	}
	return string(b[:end]), img.order.Uint32(b[at:]), true
}

// openDebugFile opens an ELF file, or returns nil. The name may be empty.
func openDebugFile(name string) *debugFile {
	if name == "" {
		return nil
	}
	f, size, err := openRegular(name)
	if err != nil {
		return nil
	}
	img, err := open(f, size)
	if err != nil {
		f.Close()
		return nil
	}
	return &debugFile{image: img, closer: f, path: name}
}

// try is openDebugFile for a file that f may need; it also notes that the file was
// consulted.
func (f *File) try(name string) *debugFile {
	if name == "" {
		return nil
	}
	f.consult(name)
	return openDebugFile(name)
}

// maxChecked is the largest debug file, in bytes, whose checksum is computed. There is a
// limit because a sparse file of any size costs its owner nothing.
const maxChecked = 2 << 30

// checksum returns the CRC-32 of the whole file, and whether it could be read.
func (d *debugFile) checksum() (uint32, bool) {
	if d.size > maxChecked {
		return 0, false
	}
	sum := crc32.NewIEEE()
	_, err := io.Copy(sum, io.NewSectionReader(d.r, 0, int64(d.size)))
	return sum.Sum32(), err == nil
}

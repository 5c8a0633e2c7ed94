package symbol

import (
	"hash/crc32"
	"io"
)

// debugFile is a separate debug file that was found to belong to an ELF file.
type debugFile struct {
	*image
	closer io.Closer
	path   string
}

// belongs reports whether d, which was found by build ID, is the debug file of an ELF file.
// It closes d if not. d may be nil.
func (d *debugFile) belongs(c *companions) bool {
	if d == nil {
		return false
	}
	if buildID(d.image) == c.buildID {
		return true
	}
	d.closer.Close()
	return false
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

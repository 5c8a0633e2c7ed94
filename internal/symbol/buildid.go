package symbol

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
)

// noteBuildID is NT_GNU_BUILD_ID, a note of the owner "GNU".
const noteBuildID = 3

// maxBuildID is the longest build ID that is accepted, in bytes. Linkers make 8 to 32
// bytes.
const maxBuildID = 64

// buildID returns the GNU build ID of a file in hexadecimal, or "" if the file has none. It
// reads the note sections first, because the segments of a debug file have no contents.
func buildID(img *image) string {
	for i := range img.sections {
		s := &img.sections[i]
		if s.typ != elf.SHT_NOTE {
			continue
		}
		if id := readNotes(img, s.offset, s.size, s.align).buildID(); id != "" {
			return id
		}
	}
	for i := range img.segments {
		s := &img.segments[i]
		if s.typ != elf.PT_NOTE {
			continue
		}
		if id := readNotes(img, s.offset, s.filesz, s.align).buildID(); id != "" {
			return id
		}
	}
	return ""
}

// notes holds the notes of one section or segment.
type notes struct {
	data  []byte
	order binary.ByteOrder
	align uint64 // of a note and of its description, in bytes
}

// readNotes reads the notes at off. Notes that cannot be read are treated as missing.
func readNotes(img *image, off, size, align uint64) notes {
	data, err := img.read(off, size, maxNotes, "notes")
	if err != nil {
		return notes{}
	}
	if align != 8 { // 0 and 1 mean 4 in old files
		align = 4
	}
	return notes{data, img.order, align}
}

// buildID returns the build ID in hexadecimal, or "" if no note holds one.
func (n notes) buildID() string {
	const head = 12 // sizes of name and description, type
	for b := n.data; len(b) >= head; {
		nameSize, descSize := uint64(n.order.Uint32(b)), uint64(n.order.Uint32(b[4:]))
		typ := n.order.Uint32(b[8:])
		desc := roundUp(head+nameSize, n.align)
		end := desc + descSize
		if end > uint64(len(b)) {
			return ""
		}
		if typ == noteBuildID && string(b[head:head+nameSize]) == "GNU\x00" && descSize > 0 && descSize <= maxBuildID {
			return hex.EncodeToString(b[desc:end])
		}
		b = b[min(roundUp(end, n.align), uint64(len(b))):]
	}
	return ""
}

// roundUp rounds n up to a multiple of align, a power of two.
func roundUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }

package symbol

import (
	"bytes"
	"encoding/binary"
)

// debugLink returns the name and CRC-32 of the debug file from .gnu_debuglink:
// a string, padding to four bytes, and the checksum.
func (img *image) debugLink() (name string, sum uint32, ok bool) {
	s := img.named(".gnu_debuglink")
	if s == nil || !s.stored() {
		return "", 0, false
	}
	b, err := s.read(1<<12, "debug link")
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

// maxLink is the longest section that names another file, in bytes.
const maxLink = 1 << 12

// alternate returns the name and the build ID of the file that dwz made. They come from
// .gnu_debugaltlink (a string and the build ID) or, in DWARF 5, from .debug_sup (7.3.6).
func (img *image) alternate() (name string, id []byte) {
	if s := img.named(".gnu_debugaltlink"); s != nil && s.stored() {
		b, err := s.read(maxLink, "link to an alternate file")
		if err != nil {
			return "", nil
		}
		text, id, _ := bytes.Cut(b, []byte{0})
		return string(text), id
	}
	supplementary, name, id := img.supplementary()
	if supplementary {
		return "", nil
	}
	return name, id
}

// supplement returns the identifier of a file that dwz made, or nil if the file is not one.
func (img *image) supplement() []byte {
	if supplementary, _, id := img.supplementary(); supplementary && len(id) > 0 {
		return id
	}
	return []byte{}
}

// supplementary reads .debug_sup: a version, whether this is the file that others refer to,
// the name of that file if it is not, and the file's identifier, preceded by its length as
// LEB128.
func (img *image) supplementary() (is bool, name string, id []byte) {
	s := img.named(".debug_sup")
	if s == nil || !s.stored() {
		return false, "", nil
	}
	const version, head = 5, 3
	b, err := s.read(maxLink, "link to a supplementary file")
	if err != nil || len(b) < head || img.order.Uint16(b) != version {
		return false, "", nil
	}
	is = b[2] != 0
	text, rest, _ := bytes.Cut(b[head:], []byte{0})
	n, used := binary.Uvarint(rest)
	if used <= 0 || n > uint64(len(rest)-used) {
		return false, "", nil
	}
	return is, string(text), rest[used : used+int(n)]
}

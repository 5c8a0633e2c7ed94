package symbol

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"

	"rtrace-bpf/trace"
)

// DebugSections returns the contents of sections of debugging information, unpacked; nil
// for sections that are missing. All come from one file: the file itself if it has contents
// for the first section, else its separate debug file. The caller owns the result, which
// has at most limit bytes. The file must be open.
func (f *File) DebugSections(limit uint64, names ...string) ([][]byte, error) {
	img, _, done := f.debugImage(names[0])
	if img == nil {
		return make([][]byte, len(names)), nil
	}
	defer done()
	return img.debugSections(limit, names)
}

// debugImage returns the image that has contents for a section of debugging information,
// and its file's name. The image is that of the file itself or of its debug file; it is nil
// if neither has the section. done closes what was opened.
func (f *File) debugImage(section string) (img *image, name string, done func()) {
	if f.image.debugSection(section) != nil {
		return f.image, f.name, func() {}
	}
	debug := f.openDebug(false)
	if debug == nil {
		return nil, "", nil
	}
	return debug.image, debug.path, func() { debug.closer.Close() }
}

// debugSections returns the contents of sections; nil for those that are missing.
func (img *image) debugSections(limit uint64, names []string) ([][]byte, error) {
	all := make([][]byte, len(names))
	for i, name := range names {
		s := img.debugSection(name)
		if s == nil {
			continue
		}
		data, err := img.debugContents(s, limit, name)
		if err != nil {
			return nil, err
		}
		all[i] = data
		limit -= uint64(len(data))
	}
	return all, nil
}

// oldPrefix replaces ".debug_" in the names of sections that are packed in the old way,
// from before SHF_COMPRESSED.
const oldPrefix = ".zdebug_"

// debugSection returns the section of the given name whose bytes are in the
// file, packed or not, or nil.
func (img *image) debugSection(name string) *section {
	s := img.named(name)
	if s == nil {
		s = img.named(oldPrefix + strings.TrimPrefix(name, ".debug_"))
	}
	if s == nil || s.typ == elf.SHT_NOBITS {
		return nil
	}
	return s
}

// debugContents returns the bytes of a section, unpacked. More than limit bytes are an
// error.
func (img *image) debugContents(s *section, limit uint64, what string) ([]byte, error) {
	data, err := img.contents(s, limit, what)
	const head = 12 // "ZLIB" and the length as a big-endian number
	if err != nil || img.named(what) == s || len(data) < head || string(data[:4]) != "ZLIB" {
		return data, err
	}
	length := binary.BigEndian.Uint64(data[4:])
	if length > limit || length/maxRatio > s.size {
		return nil, fail(s.offset, trace.ErrLimit, what)
	}
	out, err := unpack(elf.COMPRESS_ZLIB, data[head:], length)
	if err != nil {
		return nil, fail(s.offset, fmt.Errorf("unpack: %w", err), what)
	}
	return out, nil
}

package symbol

import (
	"debug/elf"
	"strings"
)

// DebugSections returns the contents of sections of debugging information, unpacked; nil
// for sections that are missing. All come from one file: the file itself if it has contents
// for the first section, else its separate debug file. The caller owns the result, which
// has at most limit bytes. The file must be open.
func (c *companions) DebugSections(limit uint64, names ...string) ([][]byte, error) {
	img, _, done := c.debugImage(names[0])
	if img == nil {
		return make([][]byte, len(names)), nil
	}
	defer done()
	return img.debugSections(limit, names)
}

// debugImage returns the image that has contents for a section of debugging information,
// and its file's name. The image is that of the file itself or of its debug file; it is nil
// if neither has the section. done closes what was opened.
func (c *companions) debugImage(section string) (img *image, name string, done func()) {
	if c.main.debugSection(section) != nil {
		return c.main, c.name, func() {}
	}
	debug := c.openDebug(false)
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
		data, err := s.debugContents(limit, name)
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

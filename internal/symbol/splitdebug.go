package symbol

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"path"
	"path/filepath"
)

// SplitSections returns sections of a split DWARF file (.dwo). name is the file's name as
// the debugging information gives it, with the compiler's folder if it is known. The file
// is looked for under that name, below the root, and then next to f. accept reports whether
// the contents are the right ones; it then owns them. limit bounds the bytes that are read.
// SplitSections returns nil if no file is accepted. f may be closed.
func (f *File) SplitSections(limit uint64, name string, accept func([][]byte) bool, sections ...string) [][]byte {
	if f.path == "" || name == "" {
		return nil
	}
	candidates := []string{filepath.Join(filepath.Dir(f.name), path.Base(name))}
	if path.IsAbs(name) {
		candidates = append([]string{f.places.Root + path.Clean(name)}, candidates...)
	}
	return f.sectionsOf(limit, candidates, accept, sections)
}

// PackageSections is SplitSections for the file that holds the .dwo files of a whole
// program (.dwp): the name of f, or of its debug file, with ".dwp" appended.
func (f *File) PackageSections(limit uint64, sections ...string) [][]byte {
	if f.path == "" {
		return nil
	}
	candidates := []string{f.name + ".dwp"}
	if img, name, done := f.debugImage(".debug_info"); img != nil {
		if done(); name != f.name {
			candidates = append(candidates, name+".dwp")
		}
	}
	return f.sectionsOf(limit, candidates, func(all [][]byte) bool { return len(all[0]) > 0 }, sections)
}

// sectionsOf returns the sections of the first candidate that accept takes, or nil.
func (f *File) sectionsOf(limit uint64, candidates []string, accept func([][]byte) bool, sections []string) [][]byte {
	for _, name := range candidates {
		d := f.try(name)
		if d == nil {
			continue
		}
		all, err := d.debugSections(limit, sections)
		d.closer.Close()
		if err == nil && accept(all) {
			return all
		}
	}
	return nil
}

// AlternateSections returns sections of the file to which dwz moved what several files have
// in common. It returns nil if f refers to no such file or the file is missing. The file is
// looked for under the name that f or its debug file gives, below the root, and in the
// folders of debug files. Its build ID must be the one that f gives. f must be open.
func (f *File) AlternateSections(limit uint64, sections ...string) [][]byte {
	img, name, done := f.debugImage(".debug_info")
	if img == nil || f.path == "" {
		return nil
	}
	link, id := img.alternate()
	done()
	if link == "" || len(id) < 2 {
		return nil
	}
	var candidates []string
	if path.IsAbs(link) {
		candidates = append(candidates, f.places.Root+path.Clean(link))
	} else {
		candidates = append(candidates, filepath.Join(filepath.Dir(name), link))
	}
	candidates = append(candidates, f.places.byBuildID(hex.EncodeToString(id), debugSuffix)...)
	for _, dir := range f.places.folders() {
		candidates = append(candidates, dir+"/.dwz/"+path.Base(link))
	}
	for _, candidate := range candidates {
		d := f.try(candidate)
		if d == nil {
			continue
		}
		if d.buildID() == hex.EncodeToString(id) || bytes.Equal(d.supplement(), id) {
			all, err := d.debugSections(limit, sections)
			if d.closer.Close(); err == nil {
				return all
			}
			continue
		}
		d.closer.Close()
	}
	return nil
}

// maxLink is the longest section that names another file, in bytes.
const maxLink = 1 << 12

// alternate returns the name and the build ID of the file that dwz made. They come from
// .gnu_debugaltlink (a string and the build ID) or, in DWARF 5, from .debug_sup (7.3.6).
func (img *image) alternate() (name string, id []byte) {
	if s := img.named(".gnu_debugaltlink"); s != nil && s.stored() {
		b, err := img.read(s.offset, s.size, maxLink, "link to an alternate file")
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
	b, err := img.read(s.offset, s.size, maxLink, "link to a supplementary file")
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

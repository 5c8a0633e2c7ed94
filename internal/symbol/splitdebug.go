package symbol

import (
	"bytes"
	"encoding/hex"
	"path"
	"path/filepath"
)

// SplitSections returns sections of a split DWARF file (.dwo). name is the file's name as
// the debugging information gives it, with the compiler's folder if it is known. The file
// is looked for under that name, below the root, and then next to the ELF file. accept reports whether
// the contents are the right ones; it then owns them. limit bounds the bytes that are read.
// SplitSections returns nil if no file is accepted. The ELF file may be closed.
func (c *companions) SplitSections(limit uint64, name string, accept func([][]byte) bool, sections ...string) [][]byte {
	if c.path == "" || name == "" {
		return nil
	}
	candidates := []string{filepath.Join(filepath.Dir(c.name), path.Base(name))}
	if path.IsAbs(name) {
		candidates = append([]string{c.places.Root + path.Clean(name)}, candidates...)
	}
	return c.sectionsOf(limit, candidates, accept, sections)
}

// PackageSections is SplitSections for the file that holds the .dwo files of a whole
// program (.dwp): the name of the ELF file, or of its debug file, with ".dwp" appended.
func (c *companions) PackageSections(limit uint64, sections ...string) [][]byte {
	if c.path == "" {
		return nil
	}
	candidates := []string{c.name + ".dwp"}
	if img, name, done := c.debugImage(".debug_info"); img != nil {
		if done(); name != c.name {
			candidates = append(candidates, name+".dwp")
		}
	}
	return c.sectionsOf(limit, candidates, func(all [][]byte) bool { return len(all[0]) > 0 }, sections)
}

// sectionsOf returns the sections of the first candidate that accept takes, or nil.
func (c *companions) sectionsOf(limit uint64, candidates []string, accept func([][]byte) bool, sections []string) [][]byte {
	for _, name := range candidates {
		d := c.try(name)
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
// in common. It returns nil if the ELF file refers to no such file or the file is missing. The
// file is looked for under the name that the ELF file or its debug file gives, below the
// root, and in the folders of debug files. Its build ID must be the one that the ELF file
// gives. The ELF file must be open.
func (c *companions) AlternateSections(limit uint64, sections ...string) [][]byte {
	img, name, done := c.debugImage(".debug_info")
	if img == nil || c.path == "" {
		return nil
	}
	link, id := img.alternate()
	done()
	if link == "" || len(id) < 2 {
		return nil
	}
	var candidates []string
	if path.IsAbs(link) {
		candidates = append(candidates, c.places.Root+path.Clean(link))
	} else {
		candidates = append(candidates, filepath.Join(filepath.Dir(name), link))
	}
	candidates = append(candidates, c.places.byBuildID(hex.EncodeToString(id), debugSuffix)...)
	for _, dir := range c.places.folders() {
		candidates = append(candidates, dir+"/.dwz/"+path.Base(link))
	}
	for _, candidate := range candidates {
		d := c.try(candidate)
		if d == nil {
			continue
		}
		if buildID(d.image) == hex.EncodeToString(id) || bytes.Equal(d.supplement(), id) {
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

package symbol

import (
	"debug/elf"
	"path"
	"slices"
	"sync"
)

// companions finds the files that hold more about an ELF file: its separate debug file, and
// those of split DWARF and of dwz.
type companions struct {
	main    *image
	buildID string
	places  *Places
	path    string // of the ELF file on the traced machine; empty if unknown
	name    string // of the ELF file on this machine; empty if it is not a file on disk

	consulting sync.Mutex
	consulted  []Consulted
}

// BuildID returns the GNU build ID in hexadecimal, or "" if there is none.
func (c *companions) BuildID() string { return c.buildID }

// Name returns the path under which the file was opened on this machine, or "" if it is not
// a file on disk.
func (c *companions) Name() string { return c.name }

// consult notes that a file is about to be opened.
func (c *companions) consult(name string) {
	c.consulting.Lock()
	defer c.consulting.Unlock()
	if !slices.ContainsFunc(c.consulted, func(old Consulted) bool { return old.Name == name }) {
		c.consulted = append(c.consulted, Consult(name))
	}
}

// Consulted returns the files that were looked for so far. The caller owns the
// list.
func (c *companions) Consulted() []Consulted {
	c.consulting.Lock()
	defer c.consulting.Unlock()
	return slices.Clone(c.consulted)
}

// openDebug opens the separate debug file, or returns nil if there is none. For symbols it
// looks for one only if the file has no symbol table of its own or has a debug link. The
// build ID or the checksum must match.
func (c *companions) openDebug(forSymbols bool) *debugFile {
	if c.path == "" {
		return nil
	}
	link, sum, linked := c.main.debugLink()
	if forSymbols && !linked && c.main.has(elf.SHT_SYMTAB) {
		return nil
	}
	if len(c.buildID) > 2 {
		for _, name := range c.places.byBuildID(c.buildID, debugSuffix) {
			if d := c.try(name); d.belongs(c) {
				return d
			}
		}
	}
	if linked {
		for _, name := range c.places.linked(path.Dir(c.path), link) {
			if d := c.try(name); d != nil {
				if got, ok := d.checksum(); ok && got == sum {
					return d
				}
				d.closer.Close()
			}
		}
	}
	if c.places.Fetch != nil && len(c.buildID) > 2 && !c.main.Detached() {
		if d := c.try(c.places.Fetch(c.buildID, true)); d.belongs(c) {
			return d
		}
	}
	return nil
}

// try is openDebugFile for a file that may be needed; it also notes that the file was
// consulted.
func (c *companions) try(name string) *debugFile {
	if name == "" {
		return nil
	}
	c.consult(name)
	return openDebugFile(name)
}

package symbol

import (
	"bytes"
	"debug/elf"
)

// Object is a variable.
type Object struct {
	Addr uint64 // before the load bias is added
	Size uint64 // bytes; 0 if unknown
}

// Objects returns the variables with the given names; those without a symbol are missing.
// Symbols of the file itself take precedence over those of its separate debug file. The
// file must be open.
func (f *File) Objects(names ...string) map[string]Object {
	found := make(map[string]Object)
	addObjects(found, f.image, names)
	if len(found) < len(names) {
		if debug := f.openDebug(true); debug != nil {
			addObjects(found, debug.image, names)
			debug.closer.Close()
		}
	}
	return found
}

// addObjects adds the variables of all symbol tables of a file that were not found yet. It
// skips what cannot be read.
func addObjects(found map[string]Object, img *image, names []string) {
	for _, src := range sources(img) {
		if src.check() != nil || src.checkNames(0) != nil {
			continue
		}
		texts := make([]byte, src.nstrings)
		if src.readNames(texts) != nil {
			continue
		}
		_ = src.each(func(_ uint64, raw rawSymbol) { // use what could be read
			addObject(found, raw, texts, names)
		})
	}
}

// addObject adds a symbol if it is a variable with one of the names.
func addObject(found map[string]Object, raw rawSymbol, texts []byte, names []string) {
	if elf.ST_TYPE(raw.info) != elf.STT_OBJECT || raw.index == elf.SHN_UNDEF || uint64(raw.name) >= uint64(len(texts)) {
		return
	}
	for _, name := range names {
		text, ok := bytes.CutPrefix(texts[raw.name:], []byte(name))
		if ok && len(text) > 0 && text[0] == 0 {
			if _, again := found[name]; !again {
				found[name] = Object{Addr: raw.value, Size: raw.size}
			}
			return
		}
	}
}

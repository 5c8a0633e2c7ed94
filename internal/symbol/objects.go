package symbol

import (
	"bytes"
	"debug/elf"
	"math"
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
	f.image.objects(found, names)
	if len(found) < len(names) {
		if debug := f.openDebug(true); debug != nil {
			debug.objects(found, names)
			debug.closer.Close()
		}
	}
	return found
}

// objects adds the variables of all symbol tables that were not found yet. It skips what
// cannot be read.
func (img *image) objects(found map[string]Object, names []string) {
	for _, src := range img.sources() {
		if img.check(&src) != nil || src.strings > img.size || src.nstrings > min(img.size-src.strings, maxStrings, math.MaxUint32) {
			continue
		}
		texts := make([]byte, src.nstrings)
		if img.readInto(texts, src.strings, "symbol names") != nil {
			continue
		}
		const batch = 1 << 12
		buf := make([]byte, min(src.count, batch)*img.symbolSize())
		for i := uint64(0); i < src.count; i += batch {
			n := min(batch, src.count-i)
			chunk := buf[:n*img.symbolSize()]
			if img.readInto(chunk, src.offset+i*img.symbolSize(), "symbol table") != nil {
				break
			}
			c := img.cursor(chunk)
			for range n {
				addObject(found, readSymbol(c), texts, names)
			}
		}
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

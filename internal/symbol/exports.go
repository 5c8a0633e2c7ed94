package symbol

import "debug/elf"

// Exported returns the function with the given name that the file offers to
// others: what the dynamic loader finds, which looks at nothing but .dynsym. The
// other symbols need not be read for it.
func (f *File) Exported(name string) (Symbol, bool) {
	f.exporting.Do(func() {
		b := newBuilder(f.image)
		for _, src := range f.image.sources() {
			if src.dynamic {
				_ = b.addSource(f.image, &src) // what could be read is there
			}
		}
		f.exports = b.finish()
	})
	return symbolNamed(f.exports, name)
}

// symbolNamed returns the best function of a table with the given name.
func symbolNamed(t *table, name string) (Symbol, bool) {
	i := t.defined(name)
	if i < 0 {
		return Symbol{}, false
	}
	return t.symbol(i), true
}

// Dynamic returns where the dynamic segment is loaded, before the load bias is
// added, and its size in bytes. A static program may have none.
func (f *File) Dynamic() (addr, size uint64, ok bool) {
	for i := range f.image.segments {
		if s := &f.image.segments[i]; s.typ == elf.PT_DYNAMIC {
			return s.addr, s.filesz, true
		}
	}
	return 0, 0, false
}

// Protected says whether the file has data that its loader makes read-only when it has
// relocated it.
func (f *File) Protected() bool {
	for i := range f.image.segments {
		if s := &f.image.segments[i]; s.typ == elf.PT_GNU_RELRO && s.memsz > 0 {
			return true
		}
	}
	return false
}

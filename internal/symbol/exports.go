package symbol

import "debug/elf"

// Exported returns the function with the given name that the file exports: the one that the
// dynamic loader finds. Like the loader, it looks only at .dynsym and does not load the
// other symbols.
func (f *File) Exported(name string) (Symbol, bool) {
	f.exporting.Do(func() {
		b := newBuilder(f.image)
		for _, src := range f.image.sources() {
			if src.dynamic {
				_ = b.addSource(f.image, &src) // use what could be read
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

// Dynamic returns the address of the dynamic segment, before the load bias is added, and
// its size in bytes. A static program may have none.
func (f *File) Dynamic() (addr, size uint64, ok bool) {
	for i := range f.image.segments {
		if s := &f.image.segments[i]; s.typ == elf.PT_DYNAMIC {
			return s.addr, s.filesz, true
		}
	}
	return 0, 0, false
}

// Protected reports whether the file has data that its loader makes read-only after
// relocation.
func (f *File) Protected() bool {
	for i := range f.image.segments {
		if s := &f.image.segments[i]; s.typ == elf.PT_GNU_RELRO && s.memsz > 0 {
			return true
		}
	}
	return false
}

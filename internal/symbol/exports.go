package symbol

// Exported returns the function with the given name that the file exports: the one that the
// dynamic loader finds. Like the loader, it looks only at .dynsym and does not load the
// other symbols.
func (f *File) Exported(name string) (Symbol, bool) {
	f.exporting.Do(func() {
		b := newBuilder(f.image)
		for _, src := range sources(f.image) {
			if src.dynamic {
				_ = b.addSource(&src) // use what could be read
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

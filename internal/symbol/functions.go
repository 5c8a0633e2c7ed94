package symbol

// Functions is the names of code that no file has, as a trace tells them: that of
// a just-in-time compiler. Where code was put to where other code was, the later
// function counts, whenever the address was used. The zero value has none.
type Functions struct {
	spans   PerfMap
	modules []string // of the entries of spans
	known   map[string]string
	sorted  int // entries that spans finds
}

// Add adds the function at [start, end). Names are copied and made printable.
func (f *Functions) Add(name, module string, start, end uint64) {
	if end <= start || name == "" || len(f.spans.entries) >= maxPerfEntries {
		return
	}
	if f.known == nil {
		f.known = make(map[string]string)
	}
	path, ok := f.known[module]
	if !ok {
		path = Printable(module)
		f.known[module] = path
	}
	f.spans.entries = append(f.spans.entries, perfEntry{start, end, Printable(name)})
	f.modules = append(f.modules, path)
}

// Lookup returns the name of the function at an address and the file that it was
// made from, empty if that is unknown.
func (f *Functions) Lookup(addr uint64) (name, module string, ok bool) {
	all := f.spans.entries
	if added := len(all) - f.sorted; added > max(maxAdded, f.sorted/8) {
		f.spans.starts, f.spans.owners = f.spans.starts[:0], f.spans.owners[:0]
		f.spans.spans()
		f.sorted = len(all)
	}
	for i := len(all) - 1; i >= f.sorted; i-- {
		if e := &all[i]; addr >= e.start && addr < e.end {
			return e.name, f.modules[i], true
		}
	}
	span, ok := f.spans.find(addr)
	if !ok {
		return "", "", false
	}
	i := f.spans.owners[span]
	return all[i].name, f.modules[i], true
}

// maxAdded is how many functions are looked through one by one before they are
// sorted with the others.
const maxAdded = 64

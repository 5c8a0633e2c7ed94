package symbol

// Functions holds the names of code that is in no file, such as that of a just-in-time
// compiler, as the records of a trace give them. If a function was put where another one
// was, the later one counts for all addresses, no matter when they were recorded. The zero
// value is empty.
type Functions struct {
	spans   PerfMap
	modules []string // of the entries of spans
	known   map[string]string
	sorted  int // entries that spans finds
}

// Add adds the function at [start, end). It copies the names and makes them printable.
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

// Lookup returns the name of the function at addr and the file that it was compiled from,
// which is empty if unknown.
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

// maxAdded is how many added functions are searched one by one before they are sorted in
// with the others.
const maxAdded = 64

package lines

// Limits of names.
const (
	maxName  = 1<<16 - 1 // bytes of a function's name
	maxPath  = 1 << 12   // bytes of the path of a folder or file
	maxNames = 16 << 20  // bytes of names that are kept
	maxHops  = 16        // references from an entry to the one with the name
)

// functionName is the name of a function in a unit.
type functionName struct {
	text    string
	linkage bool   // text is the name of the symbol
	space   string // otherwise: the outermost namespace
}

// names keeps the names of the functions of entries.
type names struct {
	known map[uint32]functionName
	bytes int
}

// add keeps a name. It drops the others if there are too many.
func (k *names) add(at uint32, n functionName) {
	if k.bytes += len(n.text) + len(n.space) + 64; k.bytes > maxNames || k.known == nil {
		k.known, k.bytes = make(map[uint32]functionName), len(n.text)+len(n.space)
	}
	k.known[at] = n
}

// name returns the name of the function of an entry, or of the one that the entry is an
// instance of.
func (t *Table) name(at uint32) functionName {
	if n, ok := t.names.known[at]; ok {
		return n
	}
	n := findName(t, uint64(at))
	t.names.add(at, n)
	return n
}

// findName follows an entry's references to the name that the linker knows, or else returns
// the first other name.
func findName(t *Table, at uint64) (n functionName) {
	for range maxHops {
		u := t.unitOf(at)
		if u == nil {
			break
		}
		c, a := t.entry(u, at)
		if a == nil {
			break
		}
		var e entry
		e.read(&c, a, u)
		if c.short {
			break
		}
		if s := t.info.text(u, e.linkage); len(s) > 0 && len(s) <= maxName {
			return functionName{text: string(s), linkage: true}
		}
		if s := t.info.text(u, e.name); n.text == "" && len(s) <= maxName {
			n.text = string(s)
		}
		if n.space == "" && (u.data != nil || t.isAlternate) {
			if s := t.load(u).functions.namespace(uint32(at)); len(s) <= maxName {
				n.space = string(s)
			}
		}
		switch e.origin.kind {
		case kindRef:
		case kindRefAlternate:
			if t = t.alternateTable(); t == nil {
				return n
			}
		default:
			return n
		}
		at = e.origin.n
	}
	return n
}

// alternateTable returns the table of the alternate file that dwz made, or nil.
func (t *Table) alternateTable() *Table {
	if t.alternate == nil && t.info.alternate != nil {
		t.alternate = &Table{info: t.info.alternate, symbol: t.symbol, isAlternate: true}
		t.alternate.readUnits()
		t.alternate.budget = maxIndexWork
		for i := range t.alternate.units {
			u := &t.alternate.units[i]
			if !t.alternate.work(t.alternate.abbreviations.of(t.alternate.info, u).attrs + 1) {
				break
			}
			t.alternate.readRoot(u, nil)
		}
	}
	return t.alternate
}

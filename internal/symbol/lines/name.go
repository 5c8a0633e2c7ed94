package lines

// Limits of names.
const (
	maxName  = 1<<16 - 1 // bytes of a function's name
	maxPath  = 1 << 12   // bytes of a folder or file
	maxNames = 16 << 20  // bytes of names that are kept
	maxHops  = 16        // from an entry to where the name is
)

// functionName is what a unit says a function is called.
type functionName struct {
	text    string
	linkage bool   // it is the name of the symbol
	space   string // else: the outermost namespace
}

// name returns the name of the function that an entry is or was made from.
func (t *Table) name(at uint32) functionName {
	if n, ok := t.names[at]; ok {
		return n
	}
	n := t.findName(uint64(at))
	if t.nameBytes += len(n.text) + len(n.space) + 64; t.nameBytes > maxNames || t.names == nil {
		t.names, t.nameBytes = make(map[uint32]functionName), len(n.text)+len(n.space)
	}
	t.names[at] = n
	return n
}

// findName follows an entry to those that say more, for the name that the
// linker knows, or else the first other one.
func (t *Table) findName(at uint64) (n functionName) {
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
		if s := t.text(u, e.linkage); len(s) > 0 && len(s) <= maxName {
			return functionName{text: string(s), linkage: true}
		}
		if s := t.text(u, e.name); n.text == "" && len(s) <= maxName {
			n.text = string(s)
		}
		if n.space == "" && u.data != nil {
			if s := u.data.functions.namespace(uint32(at)); len(s) <= maxName {
				n.space = string(s)
			}
		}
		if e.origin.kind != kindRef {
			break
		}
		at = e.origin.n
	}
	return n
}

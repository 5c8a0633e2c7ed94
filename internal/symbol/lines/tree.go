package lines

import (
	"debug/dwarf"
	"slices"

	"rtrace-bpf/trace"
)

// Limits of what is kept of one unit.
const (
	maxNodes = 1 << 21
	maxSpans = 1 << 22
	maxDepth = 1 << 12 // levels of nested entries
)

// node is a function with code of its own, or an inlined call.
type node struct {
	entry   uint32 // offset in .debug_info
	parent  int32  // the node that a call was inlined into; none for a function
	file    uint32 // of the call
	line    uint32
	inlined bool
}

// Values for the parent of a node that has no parent node.
const (
	none = -1
	// abstract marks what is inside a function without code of its own. Such a description
	// is generic and has no addresses.
	abstract = -2
)

// functions is the functions and inlined calls of a unit, by address.
type functions struct {
	nodes  []node
	starts []uint64
	owners []int32 // node that owns [starts[i], starts[i+1]), or none

	spaces []space
}

// space is the entries [start, end) of an outermost namespace.
type space struct {
	start, end uint32
	name       []byte
}

// span is a range of addresses that a node has.
type span struct {
	extent
	node int32
}

// treeReader reads the entries of a unit.
type treeReader struct {
	t     *Table
	u     *unit
	c     cursor
	stack []int32 // parents for the entries that are open
	f     functions
	spans []span
	addrs rangeReader
}

// readFunctions reads all entries of a unit.
func readFunctions(t *Table, u *unit) (functions, error) {
	r := &treeReader{t: t, u: u, addrs: rangeReader{t: t, u: u}, c: t.info.cursor(t.info.info[:u.end], uint64(u.first))}
	err := r.run()
	r.f.cover(r.spans)
	return r.f, err
}

func (r *treeReader) run() error {
	table := r.t.abbreviations.of(r.t.info, r.u)
	around := int32(none)
	for r.c.left() > 0 {
		at := r.c.at
		code := r.c.uleb()
		if code == 0 {
			if len(r.stack) == 0 {
				return nil // padding
			}
			around = r.leave(at)
			if len(r.stack) == 0 {
				return nil
			}
			continue
		}
		a := table.find(code)
		if a == nil {
			if table.err != nil {
				return table.err
			}
			return fail("debug_info", at, trace.ErrMalformed, "code of an entry")
		}
		inside, err := r.entry(a, at, around)
		if err != nil {
			return err
		}
		switch {
		case r.c.short:
			return fail("debug_info", at, trace.ErrMalformed, "entry")
		case a.children:
			if len(r.stack) >= maxDepth {
				return fail("debug_info", at, trace.ErrLimit, "depth of entries")
			}
			r.stack = append(r.stack, around)
			around = inside
		case len(r.stack) == 0:
			return nil // the unit has only this entry
		}
	}
	return nil
}

// leave ends the entries whose children end at a place, and returns the parent of what
// follows.
func (r *treeReader) leave(at int) int32 {
	last := len(r.stack) - 1
	around := r.stack[last]
	r.stack = r.stack[:last]
	if n := len(r.f.spaces); last == 1 && n > 0 && r.f.spaces[n-1].end == 0 {
		r.f.spaces[n-1].end = uint32(at)
	}
	return around
}

// entry reads an entry after its code, and returns the parent of its children.
func (r *treeReader) entry(a *abbreviation, at int, around int32) (int32, error) {
	var e entry
	switch {
	case a.tag == dwarf.TagSubprogram || a.tag == dwarf.TagInlinedSubroutine && around != abstract:
		if !r.t.work(len(a.attrs) + 1) {
			return around, fail("debug_info", at, trace.ErrLimit, "unit")
		}
		e.read(&r.c, a, r.u)
	case a.tag == dwarf.TagNamespace && len(r.stack) == 1:
		e.read(&r.c, a, r.u)
		if a.children {
			r.f.spaces = append(r.f.spaces, space{start: uint32(at), name: r.t.info.text(r.u, e.name)})
		}
		return around, nil
	case a.fixed != varies:
		r.c.skip(uint64(a.fixed))
		return around, nil
	default:
		if !r.t.work(len(a.attrs)) {
			return around, fail("debug_info", at, trace.ErrLimit, "unit")
		}
		for i := range a.attrs {
			r.c.pass(a.attrs[i].form, r.u.width)
		}
		return around, nil
	}
	return r.node(a.tag, &e, at, around)
}

// node makes the node of a function or an inlined call.
func (r *treeReader) node(tag dwarf.Tag, e *entry, at int, around int32) (int32, error) {
	r.addrs.list = r.addrs.list[:0]
	r.addrs.entry(e)
	own := r.addrs.list
	n := node{entry: uint32(at), parent: none}
	if tag == dwarf.TagSubprogram {
		if len(own) == 0 {
			return abstract, nil
		}
	} else {
		n.inlined, n.parent = true, around
		n.file, n.line = e.callFile.number(), e.callLine.number()
	}
	if len(r.f.nodes) >= maxNodes || len(r.spans)+len(own) > maxSpans {
		return around, fail("debug_info", at, trace.ErrLimit, "functions of a unit")
	}
	i := int32(len(r.f.nodes))
	r.f.nodes = append(r.f.nodes, n)
	for _, x := range own {
		r.spans = append(r.spans, span{x, i})
	}
	return i, nil
}

// namespace returns the outermost namespace of an entry, or nil.
func (f *functions) namespace(entry uint32) []byte {
	i, found := slices.BinarySearchFunc(f.spaces, entry, func(s space, at uint32) int { return int(int64(s.start) - int64(at)) })
	if !found {
		i--
	}
	if i < 0 || entry >= f.spaces[i].end {
		return nil
	}
	return f.spaces[i].name
}

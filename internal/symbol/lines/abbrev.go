package lines

import (
	"debug/dwarf"
	"errors"

	"rtrace-bpf/trace"
)

// Limits of a table of abbreviations. Compilers' tables have a few hundred rows of less
// than thirty attributes.
const (
	maxAttributes = 1 << 18 // in a table
	maxPerEntry   = 256     // in an abbreviation
	maxEmpty      = 32      // in an abbreviation: attributes that take no bytes in an entry
)

// abbreviation describes a kind of entry and which attributes it has.
type abbreviation struct {
	code     uint64
	tag      dwarf.Tag
	children bool
	fixed    int // bytes that the attributes take, or varies
	attrs    []attribute
}

type attribute struct {
	name     dwarf.Attr
	form     form
	implicit int64 // the value for formImplicitConst
}

// abbreviations is a table of .debug_abbrev.
type abbreviations struct {
	at    uint64
	width width
	list  []abbreviation
	codes map[uint64]int32 // nil if the codes are 1, 2, 3 …
	attrs int              // in all abbreviations
	err   error            // what ended the table early
}

// find returns the abbreviation of a code, or nil.
func (a *abbreviations) find(code uint64) *abbreviation {
	if a.codes == nil {
		if code == 0 || code > uint64(len(a.list)) {
			return nil
		}
		return &a.list[code-1]
	}
	if i, ok := a.codes[code]; ok {
		return &a.list[i]
	}
	return nil
}

// readAbbreviations reads the table at a place of .debug_abbrev for units of the given
// width. If the table is malformed, the result holds what precedes the problem.
func (i *Info) readAbbreviations(at uint64, w width) *abbreviations {
	c := i.cursor(i.abbrev, at)
	t := &abbreviations{at: at, width: w}
	for {
		start := c.at
		code := c.uleb()
		if code == 0 {
			if c.short {
				t.err = fail("debug_abbrev", start, trace.ErrTruncated, "table")
			}
			break
		}
		a := abbreviation{code: code}
		if err := c.abbreviation(&a, w); err != nil {
			t.err = fail("debug_abbrev", start, err, "abbreviation")
			break
		}
		if t.attrs += len(a.attrs) + 1; t.attrs > maxAttributes {
			t.err = fail("debug_abbrev", start, trace.ErrLimit, "attributes of a table")
			break
		}
		t.list = append(t.list, a)
	}
	for k := range t.list {
		if t.list[k].code != uint64(k)+1 {
			t.number()
			break
		}
	}
	return t
}

// number makes the map from codes to abbreviations.
func (a *abbreviations) number() {
	a.codes = make(map[uint64]int32, len(a.list))
	for k := range a.list {
		a.codes[a.list[k].code] = int32(k)
	}
}

// abbreviation reads what follows a code.
func (c *cursor) abbreviation(a *abbreviation, w width) error {
	a.tag = dwarf.Tag(min(c.uleb(), 1<<32-1))
	a.children = c.u8() != 0
	empty := 0
	for {
		attr := attribute{name: dwarf.Attr(min(c.uleb(), 1<<32-1))}
		attr.form = form(min(c.uleb(), maxForm))
		if c.short {
			return trace.ErrTruncated
		}
		if attr.name == 0 && attr.form == 0 {
			return nil
		}
		if attr.form == formImplicitConst {
			attr.implicit = c.sleb()
		}
		n, ok := attr.form.size(w)
		switch {
		case !ok:
			// Entries of this kind cannot be read, but others can.
			n = varies
		case n == 0:
			empty++
		}
		if a.fixed != varies {
			a.fixed += n
		}
		if n == varies {
			a.fixed = varies
		}
		if a.attrs = append(a.attrs, attr); len(a.attrs) > maxPerEntry || empty > maxEmpty {
			return errors.Join(trace.ErrLimit, errors.New("attributes of an entry"))
		}
	}
}

// maxTables is how many tables of abbreviations are kept.
const maxTables = 16

// abbreviationTables keeps the tables that were used last, the latest first.
type abbreviationTables []*abbreviations

// of returns the table of a unit.
func (k *abbreviationTables) of(i *Info, u *unit) *abbreviations {
	tables := *k
	for n, a := range tables {
		if a.at == u.abbrev && a.width == u.width {
			copy(tables[1:n+1], tables[:n])
			tables[0] = a
			return a
		}
	}
	a := i.readAbbreviations(u.abbrev, u.width)
	if len(tables) < maxTables {
		tables = append(tables, nil)
	}
	copy(tables[1:], tables)
	tables[0] = a
	*k = tables
	return a
}

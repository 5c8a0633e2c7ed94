package lines

import (
	"debug/dwarf"

	"rtrace-bpf/trace"
)

// Limits of a structure.
const (
	maxMembers    = 1 << 12
	maxMemberName = 1 << 8 // bytes
)

// Structures returns the offsets of the members of the structures with the given names, in
// bytes from the start of the structure, by the names of structure and member. Structures
// without a description are missing; if there are several descriptions, the first one
// counts. Reading a unit ends where it is malformed or exceeds a limit. DWARF 2 gives
// offsets as expressions, which are not computed: those members are missing.
func Structures(info *Info, names ...string) map[string]map[string]uint64 {
	t := &Table{info: info}
	t.readUnits()
	found := make(map[string]map[string]uint64)
	t.budget = maxUnitWork
	for i := range t.units {
		if len(found) == len(names) {
			break
		}
		r := &structureReader{t: t, u: &t.units[i], names: names, found: found}
		// Ignore errors: another unit may have the description.
		_ = r.run()
	}
	return found
}

// structureReader reads the structures of a unit.
type structureReader struct {
	t     *Table
	u     *unit
	c     cursor
	names []string
	found map[string]map[string]uint64
}

// run reads the entries of the unit and collects the structures among them.
func (r *structureReader) run() error {
	r.t.readRoot(r.u, nil) // for the base of its strings
	r.c = r.t.info.cursor(r.t.info.info[:r.u.end], uint64(r.u.first))
	table := r.t.abbreviations.of(r.t.info, r.u)
	var members map[string]uint64 // of the current structure
	depth, inside := 0, 0         // inside: depth of the members
	for r.c.left() > 0 {
		at := r.c.at
		code := r.c.uleb()
		if code == 0 {
			if depth--; depth <= 0 {
				return nil
			}
			if depth < inside {
				members, inside = nil, 0
			}
			continue
		}
		a := table.find(code)
		switch {
		case a == nil:
			return fail("debug_info", at, trace.ErrMalformed, "code of an entry")
		case !r.t.work(len(a.attrs) + 1):
			return fail("debug_info", at, trace.ErrLimit, "unit")
		}
		switch {
		case a.tag == dwarf.TagStructType && a.children && members == nil:
			if members = r.structure(a); members != nil {
				inside = depth + 1
			}
		case a.tag == dwarf.TagMember && members != nil && depth == inside:
			r.member(a, members)
		case a.fixed != varies:
			r.c.skip(uint64(a.fixed))
		default:
			for i := range a.attrs {
				r.c.pass(a.attrs[i].form, r.u.width)
			}
		}
		switch {
		case r.c.short:
			return fail("debug_info", at, trace.ErrMalformed, "entry")
		case a.children:
			depth++
		case depth == 0:
			return nil // the unit has only this entry
		}
	}
	return nil
}

// structure begins a structure if it was asked for and is new.
func (r *structureReader) structure(a *abbreviation) map[string]uint64 {
	var e entry
	e.read(&r.c, a, r.u)
	text := string(r.t.info.text(r.u, e.name))
	for _, name := range r.names {
		if text == name && r.found[name] == nil {
			members := make(map[string]uint64)
			r.found[name] = members
			return members
		}
	}
	return nil
}

// member records the offset of a member.
func (r *structureReader) member(a *abbreviation, members map[string]uint64) {
	var name, place value
	for _, attr := range a.attrs {
		v := r.c.take(attr, r.u.width, uint64(r.u.start))
		switch attr.name {
		case dwarf.AttrName:
			name = v
		case dwarf.AttrDataMemberLoc:
			place = v
		}
	}
	text := r.t.info.text(r.u, name)
	if len(text) > 0 && len(text) <= maxMemberName && len(members) < maxMembers && place.kind == kindConst {
		members[string(text)] = place.n
	}
}

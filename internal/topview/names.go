package topview

import (
	"cmp"
	"fmt"
	"path"

	"rtrace-bpf/internal/analysis/aggregate"
)

// naming is the text of rows whose names are not known yet.
const naming = "(reading symbols)"

// unknownPlace is the text of rows without a file or library.
const unknownPlace = "(unknown)"

// noPlace is the place of rows that have none.
var noPlace Place

// names holds the texts of rows. Those of call sites do not change as long as rows are made of the
// same things.
type names struct {
	source Source
	by     By
	sites  []label // by number; without a place as long as it is not known
}

// label is the text of the row that an item belongs to, and its place, which is not changed.
type label struct {
	text  string
	place *Place
}

// group makes texts for rows of something else from now on.
func (n *names) group(by By) { n.by, n.sites = by, nil }

// of returns the label of an item of a snapshot.
func (n *names) of(x *item, s *Snapshot) label {
	switch x.kind {
	case ByThread:
		switch {
		case x.others:
			return label{"other threads", &noPlace}
		case len(s.Processes) > 1:
			return label{fmt.Sprintf("thread %d of process %d", x.n, x.pid), &noPlace}
		}
		return label{fmt.Sprintf("thread %d", x.n), &noPlace}
	case BySize:
		if x.from == x.to {
			return label{fmt.Sprintf("%d B", x.from), &noPlace}
		}
		return label{exact(x.from) + " to below " + exact(x.to+1), &noPlace}
	}
	site := int(x.n)
	for len(n.sites) <= site {
		n.sites = append(n.sites, label{})
	}
	if l := n.sites[site]; l.place != nil {
		return l
	}
	p, ok := n.source.Place(site)
	if !ok {
		return label{naming, &noPlace}
	}
	p = p.safe()
	l := n.site(s.Resources[s.Sites[site].Resource].Type, &p)
	n.sites[site] = l
	return l
}

// site returns the label of a call site with a type of resource. p is safe for a terminal.
func (n *names) site(resource string, p *Place) label {
	prefix := ""
	if resource != aggregate.Memory && resource != aggregate.Resident {
		prefix = resource + ": "
	}
	switch n.by {
	case ByFunction:
		return label{prefix + p.Function, &Place{Function: p.Function}}
	case ByFile:
		return label{prefix + cmp.Or(p.File, unknownPlace), &Place{File: p.File}}
	case ByLibrary:
		return label{prefix + cmp.Or(p.Library, unknownPlace), &Place{Library: p.Library}}
	}
	text := prefix + p.Function
	if p.File != "" {
		text += fmt.Sprintf(" (%s:%d)", path.Base(p.File), p.Line)
	}
	return label{text, p}
}

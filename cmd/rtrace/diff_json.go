package main

import "strings"

// diffObject is what 'rtrace diff --json' prints.
type diffObject struct {
	By          string      `json:"by"`
	Resource    string      `json:"resource"`
	What        string      `json:"what"` // live or allocated
	Total       diffFigures `json:"total"`
	Groups      []diffGroup `json:"groups"`       // with a difference
	OtherGroups int         `json:"other_groups"` // those that --top leaves out
	Others      diffFigures `json:"others"`       // in them
}

type diffFigures struct {
	Blocks int64  `json:"blocks"` // after less before
	Bytes  int64  `json:"bytes"`
	Before amount `json:"before"`
	After  amount `json:"after"`
}

type diffGroup struct {
	Name string `json:"name"` // as text prints it, with line ends between frames
	diffFigures
	groupIdentity
}

func (d *diffRow) figures() diffFigures {
	blocks, bytes := d.grown()
	return diffFigures{blocks, bytes, amount(d.before), amount(d.after)}
}

func (r *diffReport) object() *diffObject {
	rows, more, rest := r.sorted()
	x := &diffObject{
		By: r.options.key.String(), Resource: r.options.resource, What: "live", Total: r.total.figures(),
		Groups: make([]diffGroup, 0, len(rows)), OtherGroups: more, Others: rest.figures(),
	}
	if r.options.allocated {
		x.What = "allocated"
	}
	for _, d := range rows {
		x.Groups = append(x.Groups, diffGroup{strings.Join(d.texts, "\n"), d.figures(), d.identity})
	}
	return x
}

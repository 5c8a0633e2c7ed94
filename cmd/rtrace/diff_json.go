package main

import "strings"

// diffObject is the output of 'rtrace diff --json'.
type diffObject struct {
	By          string      `json:"by"`
	Resource    string      `json:"resource"`
	What        string      `json:"what"`            // live or allocated; only blocks allocated in the recording
	Compared    string      `json:"compared"`        // traces, or moments of one trace
	BeforeTime  int64       `json:"before_duration"` // ns from the first call to the compared moment; 0 if not known
	AfterTime   int64       `json:"after_duration"`
	Unknown     diffUnknown `json:"unknown"`
	Total       diffFigures `json:"total"`
	Groups      []diffGroup `json:"groups"`       // with a difference
	OtherGroups int         `json:"other_groups"` // groups that --top leaves out
	Others      diffFigures `json:"others"`       // sums of these
}

// diffUnknown counts blocks that were live when a recording had a gap.
type diffUnknown struct {
	Before amount `json:"before"`
	After  amount `json:"after"`
}

type diffFigures struct {
	Blocks int64  `json:"blocks"` // after minus before
	Bytes  int64  `json:"bytes"`
	Before amount `json:"before"`
	After  amount `json:"after"`
	// For two traces with times: per second of each.
	BeforeRate *diffRate `json:"before_per_second,omitempty"`
	AfterRate  *diffRate `json:"after_per_second,omitempty"`
}

type diffRate struct {
	Blocks float64 `json:"blocks"`
	Bytes  float64 `json:"bytes"`
}

type diffGroup struct {
	Name string `json:"name"` // as printed as text, with line ends between frames
	diffFigures
	groupIdentity
}

func (r *diffReport) figures(d *diffRow) diffFigures {
	blocks, bytes := d.grown()
	f := diffFigures{Blocks: blocks, Bytes: bytes, Before: amount(d.before), After: amount(d.after)}
	if !r.moments && r.lasted[0] > 0 && r.lasted[1] > 0 {
		before, after := r.rate(d.before, 0), r.rate(d.after, 1)
		f.BeforeRate, f.AfterRate = &before, &after
	}
	return f
}

func (r *diffReport) object() *diffObject {
	rows, more, rest := r.sorted()
	x := &diffObject{
		By: r.options.key.String(), Resource: r.options.resource, What: "live", Total: r.figures(&r.total),
		Compared: "traces", BeforeTime: max(0, r.lasted[0]), AfterTime: max(0, r.lasted[1]),
		Unknown: diffUnknown{amount(r.unknown[0]), amount(r.unknown[1])},
		Groups:  make([]diffGroup, 0, len(rows)), OtherGroups: more, Others: r.figures(&rest),
	}
	if r.moments {
		x.Compared = "moments"
	}
	if r.options.allocated {
		x.What = "allocated"
	}
	for _, d := range rows {
		x.Groups = append(x.Groups, diffGroup{strings.Join(d.texts, "\n"), r.figures(d), d.identity})
	}
	return x
}

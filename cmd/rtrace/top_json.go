package main

import "rtrace-bpf/internal/analysis/usage"

// topObject is what 'rtrace top --json' prints.
type topObject struct {
	By          string     `json:"by"`
	Sort        string     `json:"sort"`
	Resource    string     `json:"resource"`
	Total       topFigures `json:"total"`
	Unmatched   uint64     `json:"unmatched_frees"`
	Groups      []topGroup `json:"groups"`
	OtherGroups int        `json:"other_groups"` // those that --top leaves out
	Others      topFigures `json:"others"`       // in them; of peaks at different times the sum
}

type topFigures struct {
	Allocated amount `json:"allocated"`
	Temporary amount `json:"temporary"`
	Live      amount `json:"live"`
	Peak      amount `json:"peak"`
	AtPeak    amount `json:"at_peak"`
}

type topGroup struct {
	topFigures
	groupIdentity
}

func figures(u *usage.Usage) topFigures {
	return topFigures{amount(u.Allocated), amount(u.Temporary), amount(u.Live), amount(u.Peak), amount(u.AtPeak)}
}

func (r *topReport) object() *topObject {
	total := r.counter.Total()
	x := &topObject{
		By: r.key.String(), Sort: r.options.sort, Resource: r.options.resource, Total: figures(&total),
		Unmatched: r.counter.Unmatched(), Groups: make([]topGroup, 0, len(r.rows)), OtherGroups: r.more, Others: figures(&r.others),
	}
	for i := range r.rows {
		x.Groups = append(x.Groups, topGroup{figures(&r.rows[i].Usage), r.identity(r.rows[i].group)})
	}
	return x
}

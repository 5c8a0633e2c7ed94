package main

import "rtrace-bpf/internal/analysis/usage"

// topObject is the output of 'rtrace top --json'.
type topObject struct {
	By       string `json:"by"`
	Sort     string `json:"sort"`
	Resource string `json:"resource"`
	usage.Calls
	Total       topFigures `json:"total"`
	Replaced    amount     `json:"allocated_twice"` // live blocks that ended because another one began at their address
	Unmatched   uint64     `json:"unmatched_frees"`
	Groups      []topGroup `json:"groups"`
	OtherGroups int        `json:"other_groups"` // groups that --top leaves out
	Others      topFigures `json:"others"`       // sums of these; for peaks at different times also the sum
}

type topFigures struct {
	Allocated amount `json:"allocated"`
	Temporary amount `json:"temporary"`
	Live      amount `json:"live"`
	Unknown   amount `json:"unknown"` // live when the recording had a gap
	Peak      amount `json:"peak"`
	AtPeak    amount `json:"at_peak"`
}

type topGroup struct {
	topFigures
	groupIdentity
}

func figures(u *usage.Usage) topFigures {
	return topFigures{amount(u.Allocated), amount(u.Temporary), amount(u.Live), amount(u.Unknown), amount(u.Peak), amount(u.AtPeak)}
}

func (r *topReport) object() *topObject {
	total := r.counter.Total()
	x := &topObject{
		By: r.key.String(), Sort: r.options.sort, Resource: r.options.resource, Total: figures(&total),
		Calls: r.counter.Calls().Since(r.earlier), Replaced: amount(r.counter.Replaced()),
		Unmatched: r.counter.Unmatched(), Groups: make([]topGroup, 0, len(r.rows)), OtherGroups: r.more, Others: figures(&r.others),
	}
	for i := range r.rows {
		x.Groups = append(x.Groups, topGroup{figures(&r.rows[i].Usage), r.identity(r.rows[i].group)})
	}
	return x
}

package main

import "rtrace-bpf/internal/analysis/profile"

// mprofObject is the output of 'rtrace mprof --json'. Lists of four are for small, medium,
// large and extra large blocks.
type mprofObject struct {
	Bounds    profile.Bounds  `json:"bounds"`
	Total     mprofUsage      `json:"total"`
	Unmatched uint64          `json:"unmatched_frees"`
	Bins      []mprofBin      `json:"bins"`
	Direct    []mprofRow      `json:"direct"`
	Leaks     []mprofRow      `json:"leaks"`
	Functions []mprofFunction `json:"functions,omitempty"` // with --call-graph
	Calls     []mprofCall     `json:"calls,omitempty"`     // with --call-graph
}

type mprofUsage struct {
	Allocated mprofSums `json:"allocated"`
	Unfreed   mprofSums `json:"unfreed"`
}

type mprofSums struct {
	Count   uint64                  `json:"count"`
	Bytes   uint64                  `json:"bytes"`
	Classes [profile.Classes]uint64 `json:"bytes_by_class"`
	Counts  [profile.Classes]uint64 `json:"counts_by_class"`
}

type mprofBin struct {
	Size      uint64 `json:"size"`
	AndLarger bool   `json:"and_larger,omitempty"`
	Allocated amount `json:"allocated"`
	Unfreed   amount `json:"unfreed"`
}

type mprofRow struct {
	Functions []string `json:"functions"` // innermost first
	mprofUsage
}

type mprofFunction struct {
	Index int        `json:"index"`
	Name  string     `json:"function"`
	Self  mprofUsage `json:"self"`
	Total mprofUsage `json:"total"`
}

type mprofCall struct {
	Caller int `json:"caller"` // mprofFunction.Index
	Callee int `json:"callee"`
	mprofUsage
}

func (r *mprofReport) object() *mprofObject {
	x := &mprofObject{
		Bounds: r.options.classes, Total: usageObject(&r.total), Unmatched: r.profile.Unmatched(),
		Bins: []mprofBin{}, Direct: r.rowObjects(r.profile.Direct(r.view())),
		Leaks: r.rowObjects(r.profile.Leaks(r.options.depth, r.view())),
	}
	bins := r.profile.Bins()
	for size, n := range bins.Allocated.Count {
		if n > 0 {
			m, size := bins.Unfreed.Count[size], uint64(size)
			x.Bins = append(x.Bins, mprofBin{Size: size, Allocated: amount{n, n * size}, Unfreed: amount{m, m * size}})
		}
	}
	if n, m := bins.Allocated.Above, bins.Unfreed.Above; n.Count > 0 {
		x.Bins = append(x.Bins, mprofBin{
			Size: uint64(r.options.bins), AndLarger: true, Allocated: amount{n.Count, n.Bytes}, Unfreed: amount{m.Count, m.Bytes},
		})
	}
	if r.options.callGraph && r.profile.HasStacks() {
		for _, n := range r.profile.Graph(r.view()).Nodes {
			x.Functions = append(x.Functions, mprofFunction{n.Number, r.label(&n.Frame), usageObject(&n.Self), usageObject(&n.Total)})
			for _, e := range n.Children {
				x.Calls = append(x.Calls, mprofCall{n.Number, e.Child.Number, usageObject(&e.Usage)})
			}
		}
	}
	return x
}

func (r *mprofReport) rowObjects(rows []*profile.Row) []mprofRow {
	out := make([]mprofRow, 0, len(rows))
	for _, row := range rows {
		o := mprofRow{mprofUsage: usageObject(&row.Usage)}
		for i := range row.Frames {
			o.Functions = append(o.Functions, r.label(&row.Frames[i]))
		}
		out = append(out, o)
	}
	return out
}

func usageObject(u *profile.Usage) mprofUsage {
	return mprofUsage{sumsObject(&u.Allocated), sumsObject(&u.Unfreed)}
}

func sumsObject(s *profile.Sums) mprofSums {
	n, bytes := s.Total()
	return mprofSums{n, bytes, s.Bytes, s.Count}
}

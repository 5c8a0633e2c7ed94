package main

import "rtrace-bpf/internal/analysis/fleet"

// leakFleetObject is the output of 'rtrace leaks --json' for several traces.
type leakFleetObject struct {
	fleetObject
	By          string            `json:"by"`
	Resource    string            `json:"resource"`
	Blocks      uint64            `json:"blocks"`
	Bytes       uint64            `json:"bytes"`
	All         amount            `json:"all"`     // including blocks that --min-size, --min-age, --from and --context leave out
	Unknown     amount            `json:"unknown"` // likewise
	Listed      string            `json:"listed"`  // which blocks blocks, bytes and groups count: live or unknown
	Replaced    amount            `json:"allocated_twice"`
	Unmatched   uint64            `json:"unmatched_frees"`
	Suppressed  *suppressedObject `json:"suppressed,omitempty"`
	Growing     int               `json:"growing_groups"` // which come first
	GrowingIn   fleet.Count       `json:"growing_in"`     // where at least one group grows
	Groups      []leakFleetRow    `json:"groups"`
	OtherGroups int               `json:"other_groups"` // groups that --top leaves out
	Others      amount            `json:"others"`       // sums of these
}

type leakFleetRow struct {
	amount
	rowObject
	Growing *leakFleetGrowth `json:"growing,omitempty"` // if it grows in a trace
}

type leakFleetGrowth struct {
	fleet.Count         // where it grows
	amount              // live in these traces
	BlocksRate  float64 `json:"blocks_per_second"` // of all these traces together
	BytesRate   float64 `json:"bytes_per_second"`
}

func (f *leakFleet) json() *leakFleetObject {
	rows, growing, more, rest := f.sorted()
	x := &leakFleetObject{
		fleetObject: f.object(), By: f.options.key.String(), Resource: f.options.resource, Blocks: f.total.Blocks, Bytes: f.total.Bytes,
		All: f.all, Unknown: f.unknown, Listed: "live", Replaced: f.replaced, Unmatched: f.unmatched, Suppressed: f.options.suppressions.object(),
		Growing: growing, GrowingIn: f.growing.Count(), Groups: make([]leakFleetRow, 0, len(rows)), OtherGroups: more, Others: rest,
	}
	if f.options.unknown {
		x.Listed = "unknown"
	}
	for _, row := range rows {
		out := leakFleetRow{amount: row.Sum.amount, rowObject: f.row(row.Of, &row.In, &row.Sum.place)}
		if g := &row.Sum.growth; g.in.Count().Traces > 0 {
			out.Growing = &leakFleetGrowth{g.in.Count(), g.live, g.blocks, g.bytes}
		}
		x.Groups = append(x.Groups, out)
	}
	return x
}

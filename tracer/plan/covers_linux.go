package plan

import (
	"slices"

	"rtrace-bpf/tracer/object"
)

// Covers says whether a tracer that was opened with p traces all that o would, where o
// is about what the process has become since: then it need not be replaced.
func (p *Plan) Covers(o *Plan) bool {
	if p.Options.Calls() || o.Options.Calls() { // they may be in any file
		return false
	}
	if p.Target.PID != o.Target.PID || p.Target.Machine != o.Target.Machine || p.Target.AddressBits != o.Target.AddressBits ||
		p.mechanism != o.mechanism || p.Bounded != o.Bounded {
		return false
	}
	// What the programs are told of each place must be the same as well.
	var none object.ProbeObjects
	had, want := p.Placements(&none), o.Placements(&none)
	for i := range want {
		for j := range want[i].Probes {
			if !slices.ContainsFunc(had[i].Probes, want[i].Probes[j].same) {
				return false
			}
		}
	}
	return true
}

// same says whether two probes are in the same place of the same file, for the same.
func (p *Probe) same(o Probe) bool {
	return p.ID == o.ID && p.Offset == o.Offset && p.Site == o.Site
}

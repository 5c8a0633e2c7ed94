package plan

import (
	"slices"

	"rtrace-bpf/tracer/object"
)

// Covers reports whether a tracer that was opened with p traces all that o would trace. o is
// a plan for the same process after an exec. If p covers it, the tracer need not be
// replaced.
func (p *Plan) Covers(o *Plan) bool {
	if p.Options.Calls() || o.Options.Calls() { // traced functions may be in any file
		return false
	}
	if p.Target.PID != o.Target.PID || p.Target.Machine != o.Target.Machine || p.Target.AddressBits != o.Target.AddressBits ||
		p.mechanism != o.mechanism || p.Bounded != o.Bounded {
		return false
	}
	// Each place must have the same packed site, too.
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

// same reports whether two probes have the same place in the same file and the same packed
// site.
func (p *Probe) same(o Probe) bool {
	return p.ID == o.ID && p.Offset == o.Offset && p.Site == o.Site
}

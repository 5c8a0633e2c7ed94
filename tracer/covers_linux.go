package tracer

import "slices"

// Covers says whether a tracer that was opened with p traces all that o would, where o
// is about what the process has become since: then it need not be replaced.
func (p *Plan) Covers(o *Plan) bool {
	if p.options.calls() || o.options.calls() { // they may be in any file
		return false
	}
	if p.target.pid != o.target.pid || p.target.machine != o.target.machine || p.target.addressBits != o.target.addressBits ||
		p.mechanism != o.mechanism || p.bounded != o.bounded {
		return false
	}
	// What the programs are told of each place must be the same as well.
	var none probeObjects
	had, want := p.placements(&none), o.placements(&none)
	for i := range want {
		for j := range want[i].probes {
			if !slices.ContainsFunc(had[i].probes, want[i].probes[j].same) {
				return false
			}
		}
	}
	return true
}

// same says whether two probes are in the same place of the same file, for the same.
func (p *Probe) same(o Probe) bool {
	return p.id == o.id && p.Offset == o.Offset && p.site == o.site
}

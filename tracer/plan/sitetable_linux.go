package plan

import (
	"os"

	"rtrace-bpf/tracer/object"
)

// SiteDistance marks the keys of sites that are found by their distance from the
// allocator's code (SITE_DISTANCE in bpf/site.h).
const SiteDistance = 1 << 63

// siteText is where in such a key the number of the allocator's code is.
const siteText = 60

// SiteTable returns the packed sites by the keys under which the programs look
// for them when there are no cookies: see bpf/site.h.
func (p *Plan) SiteTable() map[uint64]uint64 {
	table := map[uint64]uint64{}
	calls, results := p.growthProbes()
	addSites(table, p.Entries(), object.ProbeSiteProgramSITE_ENTER)
	addSites(table, calls, object.ProbeSiteProgramSITE_GROW)
	addSites(table, results, object.ProbeSiteProgramSITE_GROWN)
	addSites(table, p.operatorProbes(), object.ProbeSiteProgramSITE_OPERATE)
	return table
}

// addSites adds the sites of a program, by their address within its page where
// that is the only one there.
func addSites(table map[uint64]uint64, probes []Probe, program object.ProbeSiteProgram) {
	mask := uint64(os.Getpagesize()) - 1
	places := map[uint64]int{}
	for i := range probes {
		places[probes[i].Distance&mask]++
	}
	for i := range probes {
		place := probes[i].Distance & mask
		key := place<<2 | uint64(program)
		if places[place] > 1 {
			key = probes[i].Distance<<2 | uint64(program) | SiteDistance | uint64(probes[i].text)<<siteText
		}
		table[key] = probes[i].Site
	}
}

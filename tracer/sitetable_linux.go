package tracer

import (
	"os"
)

// siteDistance marks the keys of sites that are found by their distance from the
// allocator's code (SITE_DISTANCE in bpf/site.h).
const siteDistance = 1 << 63

// siteText is where in such a key the number of the allocator's code is.
const siteText = 60

// siteTable returns the packed sites by the keys under which the programs look
// for them when there are no cookies: see bpf/site.h.
func (p *Plan) siteTable() map[uint64]uint64 {
	table := map[uint64]uint64{}
	calls, results := p.growthProbes()
	addSites(table, p.entries(), probeSiteProgramSITE_ENTER)
	addSites(table, calls, probeSiteProgramSITE_GROW)
	addSites(table, results, probeSiteProgramSITE_GROWN)
	addSites(table, p.operatorProbes(), probeSiteProgramSITE_OPERATE)
	return table
}

// addSites adds the sites of a program, by their address within its page where
// that is the only one there.
func addSites(table map[uint64]uint64, probes []Probe, program probeSiteProgram) {
	mask := uint64(os.Getpagesize()) - 1
	places := map[uint64]int{}
	for i := range probes {
		places[probes[i].distance&mask]++
	}
	for i := range probes {
		place := probes[i].distance & mask
		key := place<<2 | uint64(program)
		if places[place] > 1 {
			key = probes[i].distance<<2 | uint64(program) | siteDistance | uint64(probes[i].text)<<siteText
		}
		table[key] = probes[i].site
	}
}

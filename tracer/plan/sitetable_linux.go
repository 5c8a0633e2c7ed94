package plan

import (
	"os"

	"rtrace-bpf/tracer/object"
)

// SiteDistance is the bit in the key of a site that is found by its distance from the
// allocator's code (SITE_DISTANCE in bpf/site.h).
const SiteDistance = 1 << 63

// siteText is the first bit in such a key of the number of the allocator's code
// (SITE_TEXT_SHIFT in bpf/site.h).
const siteText = 60

// SiteTable returns the packed sites, by the keys with which the BPF programs look them up
// on kernels without cookies: see bpf/site.h.
func (l *Layout) SiteTable() map[uint64]uint64 {
	table := map[uint64]uint64{}
	addSites(table, l.Entries, object.ProbeSiteProgramSITE_ENTER)
	addSites(table, l.calls, object.ProbeSiteProgramSITE_GROW)
	addSites(table, l.results, object.ProbeSiteProgramSITE_GROWN)
	addSites(table, l.operators, object.ProbeSiteProgramSITE_OPERATE)
	addSites(table, l.Inside, object.ProbeSiteProgramSITE_PASS)
	addSites(table, l.checked, object.ProbeSiteProgramSITE_EXPECT)
	return table
}

// addSites adds the sites of a program to table. The key is the address within the page if
// no other of these sites has the same, else the distance from the code.
func addSites(table map[uint64]uint64, probes []Probe, program object.ProbeSiteProgram) {
	mask := uint64(os.Getpagesize()) - 1
	places := map[uint64]int{}
	for i := range probes {
		places[probes[i].Distance&mask]++
	}
	for i := range probes {
		place := probes[i].Distance & mask
		key := place<<3 | uint64(program)
		if places[place] > 1 {
			key = probes[i].Distance<<3 | uint64(program) | SiteDistance | uint64(probes[i].text)<<siteText
		}
		table[key] = probes[i].Site
	}
}

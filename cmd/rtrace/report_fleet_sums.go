package main

import (
	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/report/digestview"
	"rtrace-bpf/trace"
)

// placeGroups groups blocks by two keys at once: by stack, and by line as rtrace leaks and rtrace top do.
type placeGroups struct {
	stacks, lines *sites.Grouper
	number        map[[2]int]int
	of            [][2]int // groups by stack and by line, by the number of the pair
}

func newPlaceGroups(stacks *sites.Grouper, o sites.Options) *placeGroups {
	o.By = sites.ByLine
	return &placeGroups{stacks: stacks, lines: sites.NewGrouper(o), number: make(map[[2]int]int)}
}

// find returns the number of the pair of a call's block.
func (p *placeGroups) find(r *trace.Record) int {
	pair := [2]int{p.stacks.Find(r), p.lines.Find(r)}
	n, ok := p.number[pair]
	if !ok {
		n = len(p.of)
		p.number[pair] = n
		p.of = append(p.of, pair)
	}
	return n
}

// fleetSums adds up call sites and stacks by the parts of a fleet.
type fleetSums struct {
	parts  []digestview.FleetPart
	sites  []digestview.FleetSite
	stacks []digestview.FleetStack

	partOf  map[[2]string]int // by host and service
	siteOf  map[string]int    // by placeKey
	shareOf map[[2]int]int    // in sites[site].In, by site and part
	stackOf map[stackKey]int
	counted map[[2]int]*fleetTrace // the latest trace that has a share
}

type stackKey struct {
	part, site int
	frames     string
}

func newFleetSums() *fleetSums {
	return &fleetSums{
		partOf: make(map[[2]string]int), siteOf: make(map[string]int), shareOf: make(map[[2]int]int), stackOf: make(map[stackKey]int), counted: make(map[[2]int]*fleetTrace),
	}
}

// part returns the part of a trace, to which it adds the trace.
func (s *fleetSums) part(t *fleetTrace) int {
	key := [2]string{t.Host, t.Service}
	n, ok := s.partOf[key]
	if !ok {
		n = len(s.parts)
		s.partOf[key] = n
		s.parts = append(s.parts, digestview.FleetPart{Host: t.Host, Service: t.Service})
	}
	s.parts[n].Traces++
	return n
}

// site returns the number of the call site of a group by line.
func (s *fleetSums) site(of *groupFlags, x *groupTexts, g *sites.Group) int {
	key := of.placeKey(g)
	n, ok := s.siteOf[key]
	if !ok {
		n = len(s.sites)
		s.siteOf[key] = n
		s.sites = append(s.sites, digestview.FleetSite{Name: of.place(x, g).texts[0]})
	}
	return n
}

// share returns the share of a call site in the part of a trace.
func (s *fleetSums) share(t *fleetTrace, site, part int) *digestview.FleetShare {
	key := [2]int{site, part}
	in := &s.sites[site].In
	n, ok := s.shareOf[key]
	if !ok {
		n = len(*in)
		s.shareOf[key] = n
		*in = append(*in, digestview.FleetShare{Part: part})
	}
	share := &(*in)[n]
	if s.counted[key] != t {
		s.counted[key] = t
		share.Traces++
	}
	return share
}

// add adds the blocks of a trace, and returns the sum of all.
func (s *fleetSums) add(m *fleetTrace, part int, of *groupFlags, t *tally) (total digest.Use) {
	lines := groupTexts{sites.ByLine, t.stats}
	for n := range t.counter.Len() {
		pair := t.pairs.of[n]
		u := useOf(t.counter.Of(n))
		addUse(&total, &u)
		site := s.site(of, &lines, t.pairs.lines.At(pair[1]))
		addUse(&s.share(m, site, part).Use, &u)
		g := t.pairs.stacks.At(pair[0])
		key := stackKey{part, site, of.placeKey(g)}
		at, ok := s.stackOf[key]
		if !ok {
			at = len(s.stacks)
			s.stackOf[key] = at
			s.stacks = append(s.stacks, digestview.FleetStack{Frames: pageFrames(g.Frames), Part: part, Site: site})
		}
		addUse(&s.stacks[at].Use, &u)
	}
	return total
}

// grow adds the verdicts on a trace. It returns how many call sites grow.
func (s *fleetSums) grow(m *fleetTrace, part int, of *groupFlags, r *leakReport) (n int) {
	if r.trends == nil {
		return 0
	}
	groups := r.groups.Groups()
	r.trends.judge(groups)
	for _, g := range groups {
		tr := r.trends.of[g]
		if tr.Kind != trend.Growing {
			continue
		}
		share := s.share(m, s.site(of, &r.groupTexts, g), part)
		share.Growing++
		share.Blocks += tr.Blocks.PerSecond
		share.Bytes += tr.Bytes.PerSecond
		n++
	}
	if n > 0 {
		s.parts[part].Growing++
	}
	return n
}

// pageFrames returns frames as a page shows them: without the folders of source files, and without
// addresses that differ from trace to trace.
func pageFrames(frames []sites.Frame) []sites.Frame {
	out := make([]sites.Frame, len(frames))
	for i, f := range frames {
		f.File = base(f.File)
		if f.Position != "" {
			f.Addr = 0
		}
		out[i] = f
	}
	return out
}

func useOf(u usage.Usage) digest.Use {
	return digest.Use{Allocated: u.Allocated, Live: u.Live, Unknown: u.Unknown, AtPeak: u.AtPeak, Temporary: u.Temporary}
}

func addUse(to, u *digest.Use) {
	to.Allocated.Add(u.Allocated)
	to.Live.Add(u.Live)
	to.Unknown.Add(u.Unknown)
	to.AtPeak.Add(u.AtPeak)
	to.Temporary.Add(u.Temporary)
}

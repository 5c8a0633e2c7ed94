package main

import (
	"slices"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/internal/report/shortname"
	"rtrace-bpf/internal/report/verdict"
)

// lead is a group that grows, or several whose call sites leak together.
type lead struct {
	groups []*sites.Group // the fastest first
	trend  *trend.Trend   // of all
	of     *aggregate.Suspect
	below  string // the function that all call sites are in or below; empty if it is not known
}

// together reports whether several groups leak together.
func (l *lead) together() bool { return len(l.groups) > 1 }

// title returns what the groups that leak together have in common.
func (l *lead) title() string {
	n := len(l.of.Parts)
	return verdict.Together(n, shortname.Of(l.below)) + ", " + verdict.Each(n, l.trend)
}

// leadsOf returns the leads of groups that grow, the fastest group first.
func (t *trends) leadsOf(groups []*sites.Group) []*lead {
	suspects := t.engine.Suspects(t.resource)
	of := make(map[int]int) // the number of the suspect by call site
	for i := range suspects {
		for _, n := range suspects[i].Sites() {
			of[n] = i
		}
	}
	var leads []*lead
	bySuspect := make(map[int]*lead)
	for _, g := range groups {
		n := t.suspectOf(g, of)
		if n >= 0 && len(suspects[n].Parts) > 0 && bySuspect[n] != nil {
			bySuspect[n].groups = append(bySuspect[n].groups, g)
			continue
		}
		l := &lead{groups: []*sites.Group{g}, trend: t.of[g]}
		leads = append(leads, l)
		if n >= 0 {
			bySuspect[n] = l
			l.of = &suspects[n]
		}
	}
	for _, l := range leads {
		if l.together() {
			l.trend = &l.of.Trend
			l.below = t.names.below(l.of)
		}
	}
	slices.SortStableFunc(leads, func(a, b *lead) int { return a.trend.Compare(b.trend) })
	return leads
}

// suspectOf returns the number of the only suspect among the call sites of a group, or -1.
func (t *trends) suspectOf(g *sites.Group, of map[int]int) int {
	found := -1
	for _, site := range t.sites[g] {
		n, ok := of[site]
		switch {
		case !ok || n == found:
		case found >= 0:
			return -1
		default:
			found = n
		}
	}
	return found
}

// leadSuspect is a suspect in JSON: a group, or several that leak together.
type leadSuspect struct {
	*verdict.Object
	Blocks uint64 `json:"blocks"`
	Bytes  uint64 `json:"bytes"`
	Text   string `json:"text,omitempty"`       // of several groups: what they have in common
	Sites  int    `json:"call_sites,omitempty"` // of several groups
	Below  string `json:"below,omitempty"`      // the function that these are in or below
	Groups []int  `json:"groups"`               // their numbers in groups, from 0
}

// objects returns the suspects among groups for JSON.
func (t *trends) objects(groups []*sites.Group) []leadSuspect {
	out := []leadSuspect{}
	if t == nil {
		return out
	}
	for _, l := range t.leads {
		x := leadSuspect{Object: verdict.ObjectOf(l.trend), Groups: []int{}}
		if l.together() {
			x.Text, x.Sites, x.Below = l.title(), len(l.of.Parts), l.below
		}
		for _, g := range l.groups {
			x.Blocks += g.Blocks
			x.Bytes += g.Bytes
			if n := slices.Index(groups, g); n >= 0 { // --top leaves out groups
				x.Groups = append(x.Groups, n)
			}
		}
		out = append(out, x)
	}
	return out
}

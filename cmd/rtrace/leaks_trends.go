package main

import (
	"slices"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/internal/report/verdict"
	"rtrace-bpf/trace"
)

// trends holds what the call sites of groups do over time. A nil *trends has no verdicts.
type trends struct {
	engine   *aggregate.Engine
	resource string // type
	names    *siteNamer
	sites    map[*sites.Group][]int // numbers of call sites
	seen     map[groupSite]bool
	of       map[*sites.Group]*trend.Trend // after sort
	suspects int                           // groups that grow
	leads    []*lead                       // these, the fastest first
}

// groupSite is a call site in a group.
type groupSite struct{ group, site int }

func newTrends(e *aggregate.Engine, resource string, names *siteNamer) *trends {
	return &trends{engine: e, resource: resource, names: names, sites: make(map[*sites.Group][]int), seen: make(map[groupSite]bool)}
}

// add adds the call site of a live block to its group, which has the number n.
func (t *trends) add(n int, g *sites.Group, r *trace.Record) {
	site, ok := t.engine.SiteOf(r.PID, r.Call.Resource, r.Call.ID)
	if key := (groupSite{n, site}); ok && !t.seen[key] {
		t.seen[key] = true
		t.sites[g] = append(t.sites[g], site)
	}
}

// sort sorts groups: those that grow first, the fastest before the others, with those that leak
// together next to each other, and then the largest.
func (t *trends) sort(groups []*sites.Group) {
	if t.judge(groups); t.suspects == 0 {
		return
	}
	slices.SortStableFunc(groups, func(a, b *sites.Group) int {
		x, y := t.of[a], t.of[b]
		if x.Kind != trend.Growing && y.Kind != trend.Growing {
			return 0 // they are sorted already, by the blocks that count
		}
		return x.Compare(y)
	})
	if t.leads == nil {
		t.leads = t.leadsOf(groups[:t.suspects])
	}
	n := 0
	for _, l := range t.leads {
		n += copy(groups[n:], l.groups)
	}
}

// judge finds the verdicts on groups.
func (t *trends) judge(groups []*sites.Group) {
	if t.of != nil {
		return
	}
	t.of = make(map[*sites.Group]*trend.Trend)
	for _, g := range groups {
		of := t.engine.Trend(t.sites[g]...)
		t.of[g] = &of
		if of.Kind == trend.Growing {
			t.suspects++
		}
	}
}

// leadOf returns the lead of several groups that begins with a group, or nil.
func (t *trends) leadOf(g *sites.Group) *lead {
	if t == nil {
		return nil
	}
	for _, l := range t.leads {
		if l.together() && l.groups[0] == g {
			return l
		}
	}
	return nil
}

// part reports whether a group is one of several that leak together.
func (t *trends) part(g *sites.Group) bool {
	return t != nil && slices.ContainsFunc(t.leads, func(l *lead) bool { return l.together() && slices.Contains(l.groups, g) })
}

// grows reports whether a group grows.
func (t *trends) grows() bool { return t != nil && t.suspects > 0 }

// verdict returns the verdict on a group in words, or an empty string.
func (t *trends) verdict(g *sites.Group) string {
	if t == nil || t.of[g] == nil {
		return ""
	}
	return verdict.Text(t.of[g])
}

// texts returns lines about all groups.
func (t *trends) texts() (lines []string) {
	if t == nil {
		return nil
	}
	observed := verdict.ObservationOf(t.engine.State(), "")
	switch {
	case t.suspects > 0:
		text := plural(uint64(t.suspects), "group")
		if n := len(t.leads); n < t.suspects {
			text = plural(uint64(n), "suspect") + " of " + text
		}
		lines = append(lines, "growing steadily: "+text+", printed first")
	case observed.Judged && observed.Time >= verdict.EnoughTime:
		lines = append(lines, observed.None())
	default:
		return nil
	}
	return append(lines, observed.Doubts()...)
}

// object returns the verdict on a group, or nil.
func (t *trends) object(g *sites.Group) *verdict.Object {
	if t == nil || t.of[g] == nil {
		return nil
	}
	return verdict.ObjectOf(t.of[g])
}

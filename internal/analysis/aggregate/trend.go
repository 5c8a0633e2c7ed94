package aggregate

import (
	"slices"

	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/internal/live"
)

// Trend returns what the blocks of call sites do over time, taken together; they
// must be of the same type of resource. It is [trend.Unclear] for resources of which the trace has only some allocations.
func (e *Engine) Trend(sites ...int) trend.Trend {
	f := trend.Figures{Now: e.clock.Last(), Since: e.facts.gap}
	var all *trend.History
	for _, n := range sites {
		s := e.sites.At(uint64(n))
		of := e.resources.all[s.resource]
		if of.Sampled {
			return trend.Trend{}
		}
		if f.Before == nil {
			f.Before = of.earlier.At(f.Now)
		}
		f.Allocated += of.sums.Of(int(s.group)).Allocated.Blocks
		f.Freed += s.freed.Blocks
		for i, n := range s.lifetimes.all {
			f.Lifetimes[int(s.lifetimes.from)+i] += n
		}
		if h := s.history.At(f.Now); all == nil {
			all = h
		} else {
			all.Add(h)
		}
	}
	if all == nil {
		return trend.Trend{}
	}
	return trend.Judge(all, &f)
}

// SiteOf returns the number of the call site of a live or unknown block.
func (e *Engine) SiteOf(pid int32, resource uint32, id uint64) (site int, ok bool) {
	b, fate := e.blocks.Get(pid, resource, id)
	if fate == live.Absent {
		return 0, false
	}
	return int(e.sources.At(uint64(e.lives.At(b.Value).number())).site), true
}

// Suspect is a call site whose blocks pile up, or several that leak together.
type Suspect struct {
	Site  int         // of several the fastest
	Trend trend.Trend // of several taken together
	// Parts are the call sites that leak together, the fastest first, as
	// suspects of their own. It is nil for a single one.
	Parts []Suspect
	// Common is how many frames the stacks of the parts have in common, from
	// the outermost one on.
	Common int
}

// Judges reports whether the call sites of a type of resource have verdicts.
func (e *Engine) Judges(resource string) bool {
	for _, of := range e.resources.all {
		if of.Type == resource {
			return of.Judged()
		}
	}
	return false
}

// Suspects returns the call sites of a type of resource whose blocks pile up,
// the fastest in bytes first. Those that leak together are one suspect. It takes some microseconds for each site that has
// enough live blocks.
func (e *Engine) Suspects(resource string) []Suspect {
	var out []Suspect
	for i := range e.sites.Len() {
		s := e.sites.At(uint64(i))
		of := e.resources.all[s.resource]
		if of.Type != resource || of.sums.Of(int(s.group)).Live.Blocks < trend.LeastBlocks {
			continue
		}
		if t := e.Trend(i); t.Kind == trend.Growing {
			out = append(out, Suspect{Site: i, Trend: t})
		}
	}
	slices.SortStableFunc(out, func(a, b Suspect) int { return a.Trend.Compare(&b.Trend) })
	return e.merge(out)
}

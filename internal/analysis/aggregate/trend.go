package aggregate

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/internal/live"
)

// Trend returns what the blocks of call sites do over time, taken together; they
// must be of the same type of resource. It is [trend.Unclear] for resources of
// which the trace has only some allocations.
func (e *Engine) Trend(sites ...int) trend.Trend { return e.trend(new(judging), sites...) }

// judging is memory for verdicts on call sites of the same type of resource, at the
// same time.
type judging struct {
	own    trend.History  // of the first site
	before *trend.History // the frees of blocks from before the recording; nil if they are not known yet
}

// trend does what Trend does.
func (e *Engine) trend(j *judging, sites ...int) trend.Trend {
	f := trend.Figures{Now: e.clock.Last(), Since: e.facts.gap}
	var all *trend.History
	for _, n := range sites {
		s := e.sites.at(uint32(n))
		of := e.resources.all[s.resource]
		if of.Sampled {
			return trend.Trend{}
		}
		if j.before == nil {
			j.before = of.earlier.At(f.Now)
		}
		f.Before = j.before
		f.Allocated += of.sums.Of(int(s.group)).Allocated.Blocks
		f.Freed += s.freed.Blocks
		for i, n := range s.lifetimes.all {
			f.Lifetimes[int(s.lifetimes.from)+i] += n
		}
		if all == nil {
			all = s.history.CopyAt(f.Now, &j.own)
		} else {
			all.Add(s.history.At(f.Now))
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
	return int(e.sites.sources.At(uint64(e.lives.At(b.Value).number())).site), true
}

// Suspect is a call site whose blocks pile up.
type Suspect struct {
	Site  int
	Trend trend.Trend
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
// the fastest in bytes first. It takes some microseconds for each site that has
// enough live blocks, unless most of its verdict is known from the last time.
func (e *Engine) Suspects(resource string) []Suspect {
	var out []Suspect
	var j judging
	for i := range e.sites.all.Len() {
		s := e.sites.at(uint32(i))
		of := e.resources.all[s.resource]
		if of.Type != resource || of.sums.Of(int(s.group)).Live.Blocks < trend.LeastBlocks {
			continue
		}
		if t := e.trend(&j, i); t.Kind == trend.Growing {
			out = append(out, Suspect{i, t})
		}
	}
	return sorted(out)
}

// sorted returns suspects in their order. They are large: their numbers are sorted,
// and each is moved once.
func sorted(all []Suspect) []Suspect {
	order := make([]int32, len(all))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(all[a].Trend.Compare(&all[b].Trend), cmp.Compare(a, b))
	})
	out := make([]Suspect, len(all))
	for i, n := range order {
		out[i] = all[n]
	}
	return out
}

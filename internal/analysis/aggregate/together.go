package aggregate

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/trace"
)

// maxTogether bounds the suspects that are compared with each other. Others
// stay on their own.
const maxTogether = 256

// together is call sites that leak together, as far as they are known.
type together struct {
	parts   []Suspect // the fastest first
	history *trend.History
	frames  []uint64 // of the first one's stack, the innermost first
	common  int      // of these, from the outermost on, that all stacks share
}

// merge makes one suspect of those that leak together, which are the call sites
// of one operation: they belong to the same process and type of resource, their
// blocks that pile up began in step and in the same threads, and they have a
// caller in common. The order of the result is that of the merged trends.
func (e *Engine) merge(all []Suspect) []Suspect {
	var groups []*together
	for i, s := range all {
		var group *together
		var common int
		if i >= maxTogether {
			groups = append(groups, &together{parts: []Suspect{s}})
			continue
		}
		history, frames := e.sites.at(uint32(s.Site)).history.At(e.clock.Last()), e.wholeStack(s.Site)
		if len(frames) > 0 {
			for _, g := range groups {
				if common = sharedEnd(g.frames, frames); common > 0 && e.leakTogether(g, &s, history) {
					group = g
					break
				}
			}
		}
		if group == nil {
			groups = append(groups, &together{[]Suspect{s}, history, frames, len(frames)})
			continue
		}
		group.parts = append(group.parts, s)
		group.common = min(group.common, common)
	}
	if len(groups) == len(all) {
		return all
	}
	var out []Suspect
	for _, g := range groups {
		out = append(out, e.suspects(g)...)
	}
	return sorted(out)
}

// suspects returns the call sites of a group as one suspect, or if they do not
// grow when taken together, as one each.
func (e *Engine) suspects(g *together) []Suspect {
	if len(g.parts) == 1 {
		return g.parts
	}
	var numbers []int
	for i := range g.parts {
		numbers = append(numbers, g.parts[i].Site)
	}
	t := e.Trend(numbers...)
	if t.Kind != trend.Growing {
		return g.parts
	}
	return []Suspect{{Site: g.parts[0].Site, Trend: t, Parts: g.parts, Common: g.common}}
}

// leakTogether reports whether a suspect with this history leaks together with
// the first one of a group.
func (e *Engine) leakTogether(g *together, s *Suspect, history *trend.History) bool {
	first := &g.parts[0]
	a, b := e.sites.at(uint32(first.Site)), e.sites.at(uint32(s.Site))
	if a.process != b.process || a.resource != b.resource {
		return false
	}
	until := e.clock.Last() - max(first.Trend.Age, s.Trend.Age)
	return trend.InStep(g.history, history, e.facts.gap, until) && e.sameThreads(first.Site, s.Site)
}

// sameThreads reports whether each thread has about as many live blocks of two
// call sites.
func (e *Engine) sameThreads(a, b int) bool {
	live := make(map[uint64]int64)
	for i, n := range []int{a, b} {
		for _, t := range e.sites.threadsOf(e.sites.at(uint32(n))) {
			key := t.Thread
			if t.Others {
				key = ^uint64(0)
			}
			blocks := int64(t.Live.Blocks)
			if i == 1 {
				if d := live[key] - blocks; max(d, -d) > 2+max(live[key], blocks)/5 {
					return false
				}
				delete(live, key)
				continue
			}
			live[key] = blocks
		}
	}
	for _, blocks := range live {
		if blocks > 2 {
			return false
		}
	}
	return true
}

// wholeStack returns the frames of a call site, or none if the outermost ones
// are missing.
func (e *Engine) wholeStack(site int) []uint64 {
	var r trace.Record
	e.Place(site, &r)
	if s := &r.Call.Stack; s.End == trace.StackComplete || s.End == trace.StackUnknown {
		return s.Frames
	}
	return nil
}

// sharedEnd returns how many frames two stacks share from the outermost one on.
// It is less than either has.
func sharedEnd(a, b []uint64) (n int) {
	for n+1 < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// Sites returns the numbers of the call sites of a suspect, in order.
func (s *Suspect) Sites() []int {
	if len(s.Parts) == 0 {
		return []int{s.Site}
	}
	var out []int
	for i := range s.Parts {
		out = append(out, s.Parts[i].Site)
	}
	slices.SortFunc(out, cmp.Compare)
	return out
}

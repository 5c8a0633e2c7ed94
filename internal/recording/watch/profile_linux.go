package watch

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/trace"
)

// Profile returns the blocks of memory in a state as a profile. Those of programs before an
// exec are left out. It takes as long as naming all call sites, and nothing is held up.
func (w *Watch) Profile(s *aggregate.State) *stacks.Profile {
	type place struct {
		pid  int32
		addr uint64
	}
	out := &stacks.Profile{Duration: s.Time}
	numbers := make(map[place]int)
	for i := range s.Sites {
		x := &s.Sites[i]
		if !s.Resources[x.Resource].InMemory() || x.Allocated.Blocks == 0 {
			continue
		}
		out.Total.Add(&x.Usage)
		sample := stacks.Sample{Label: stacks.Label{PID: x.PID}, Usage: x.Usage}
		for _, l := range w.locations(x.Number) {
			at := place{x.PID, l.Addr}
			n, known := numbers[at]
			if !known {
				n = len(out.Locations)
				numbers[at] = n
				out.Locations = append(out.Locations, l)
			}
			sample.Stack = append(sample.Stack, n)
		}
		if len(sample.Stack) > 0 {
			out.Samples = append(out.Samples, sample)
		}
	}
	slices.SortStableFunc(out.Samples, func(a, b stacks.Sample) int { return cmp.Compare(b.Allocated.Bytes, a.Allocated.Bytes) })
	return out
}

// locations returns the frames of a call site, nil if its program is no longer mapped.
func (w *Watch) locations(site int) (all []stacks.Location) {
	w.locate(site, func(p *process, r *trace.Record) { all = p.places.Locations(r.PID, &r.Call.Stack) })
	return all
}

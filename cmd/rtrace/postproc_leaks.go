package main

import (
	encoder "rtrace-bpf/encoder/sptext"
	"rtrace-bpf/internal/analysis/leak"
	"rtrace-bpf/trace"
)

// choosesLeaks reports whether filters are applied to the leaks. The original looks for
// leaks only among the selected calls: a block leaks if its free is not among them. A free
// mostly is not, because it has no stack and another context.
func (p *postprocess) choosesLeaks() bool {
	return p.leaks && !p.legacy && p.chosen.Splits()
}

// chosenLeaks passes records on and adds up their allocations.
type chosenLeaks struct {
	src    trace.Reader
	totals map[uint32]leak.Sum // by resource
}

func (c *chosenLeaks) ReadRecord(r *trace.Record) error {
	err := c.src.ReadRecord(r)
	if err == nil && r.Kind == trace.KindCall && r.Call.Op == trace.OpAlloc {
		t := c.totals[r.Call.Resource]
		t.Blocks++
		t.Bytes += r.Call.Size
		c.totals[r.Call.Resource] = t
	}
	return err
}

// sums returns the leak summary of the resources.
func (p *postprocess) sums(c *postprocContent) []encoder.LeakSum {
	var sums []leak.Sum
	switch {
	case c.chosen != nil:
		for _, r := range p.env.resources {
			t := c.chosen.totals[r.ID]
			t.Resource = r
			sums = append(sums, t)
		}
	case p.legacy:
		sums = c.leaks.Finder().LegacySums(p.env.resources)
	default:
		sums = c.leaks.Finder().Sums(p.env.resources)
	}
	out := make([]encoder.LeakSum, len(sums))
	for i, s := range sums {
		out[i] = encoder.LeakSum{Type: s.Resource.Type, Desc: s.Resource.Desc, Blocks: s.Blocks, Bytes: s.Bytes}
	}
	return out
}

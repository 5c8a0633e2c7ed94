package main

import (
	encoder "rtrace-bpf/encoder/sptext"
	"rtrace-bpf/internal/analysis/leak"
	"rtrace-bpf/trace"
)

// choosesLeaks says that calls are chosen of what leaked. The original looks for
// leaks among the calls that are chosen: if the free of a block is not among them,
// as it mostly has no stack and is made in another context, the block leaks.
func (p *postprocess) choosesLeaks() bool {
	return p.leaks && !p.legacy && p.chosen.Splits()
}

// chosenLeaks passes records on and adds up the allocations among them.
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

// sums is the leak summary of the resources.
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

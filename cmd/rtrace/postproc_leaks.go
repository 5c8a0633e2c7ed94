package main

import (
	encoder "rtrace-bpf/encoder/sptext"
	"rtrace-bpf/internal/analysis/leak"
	"rtrace-bpf/trace"
)

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
func (c *postprocContent) sums(resources []trace.Resource, legacy bool) []encoder.LeakSum {
	var sums []leak.Sum
	switch {
	case c.chosen != nil:
		for _, r := range resources {
			t := c.chosen.totals[r.ID]
			t.Resource = r
			sums = append(sums, t)
		}
	case legacy:
		sums = c.leaks.Finder().LegacySums(resources)
	default:
		sums = c.leaks.Finder().Sums(resources)
	}
	out := make([]encoder.LeakSum, len(sums))
	for i, s := range sums {
		out[i] = encoder.LeakSum{Type: s.Resource.Type, Desc: s.Resource.Desc, Blocks: s.Blocks, Bytes: s.Bytes}
	}
	return out
}

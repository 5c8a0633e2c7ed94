package tracer

import (
	"errors"

	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/programs"
)

// rings are the rings of all programs, one for each CPU.
type rings struct {
	sources []order.Source
	grace   *order.Grace // for perf buffers; nil for ring buffers
}

// open makes the rings of the programs for calls of allocators.
func (r *rings) open(p *plan.Plan, of *programs.Programs, cpus []int) (err error) {
	size := p.Options.RingBytes(len(cpus))
	if p.Options.Buffer == plan.BufferPerf {
		r.grace = order.StartGrace(func() error { return order.GracePeriod(cpus) })
		r.sources, err = order.OpenPerfRings(of.PerfRings, cpus, size, r.grace)
	} else {
		r.sources, err = order.OpenRings(of.Rings, cpus, size)
	}
	return err
}

// add adds rings of other programs, and owns them from then on.
func (r *rings) add(sources []order.Source) { r.sources = append(r.sources, sources...) }

// Close frees the rings.
func (r *rings) Close() error {
	all := []error{order.CloseSources(r.sources)}
	r.sources = nil
	if r.grace != nil {
		all = append(all, r.grace.Close())
		r.grace = nil
	}
	return errors.Join(all...)
}

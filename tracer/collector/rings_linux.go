package collector

import (
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
)

// rings reads the rings of the programs.
type rings struct {
	sources []order.Source
	intakes []order.Intake // by source
	arrived int            // number of calls of allocators since the last call of takeArrived
}

// newRings returns the rings that sources read, which fill the first queues of to.
func newRings(sources []order.Source, machine *process.Machine, to *outlet) *rings {
	r := &rings{sources: sources, intakes: make([]order.Intake, len(sources))}
	for i := range r.intakes {
		in := &r.intakes[i]
		in.Queue, in.Machine, in.Number = to.queue(i), machine, uint16(i)
	}
	return r
}

// polled is what a poll found.
type polled struct {
	bound    uint64  // no event can come any more with a time up to this
	fullest  float64 // share of the fullest ring that was full
	remapped bool    // the dynamic loader changed the mappings
	more     bool    // events were left in a ring
}

// poll reads all rings at the time now. It passes on to the outlet what has no place in a
// queue.
func (r *rings) poll(now uint64, to *outlet) polled {
	p := polled{bound: now - order.ClockSlack}
	for i, s := range r.sources {
		in := &r.intakes[i]
		before := len(in.Queue.Events)
		p.bound = min(p.bound, s.Poll(now, in))
		if len(in.Activities) == 0 && len(in.Calls) == 0 {
			r.arrived += len(in.Queue.Events) - before
		}
		p.remapped = p.remapped || in.Maps
		in.Maps = false
		to.keep(in)
		p.fullest = max(p.fullest, s.Used())
		p.more = p.more || in.Queue.Room() <= 0
	}
	return p
}

// takeArrived returns the number of calls that have arrived since it was last called.
func (r *rings) takeArrived() int {
	n := r.arrived
	r.arrived = 0
	return n
}

package tracer

import (
	"fmt"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/keeper"
	"rtrace-bpf/tracer/plan"
)

// hold has the probes of uprobe_multi links in a process whose main thread has ended,
// with the help of one that goes on. The error is ESRCH if that one has ended.
//
// The kernel asks the memory of a link's main thread whether it wants a breakpoint
// (uprobe_multi_link_filter in kernel/trace/bpf_trace.c). When that thread has ended
// it has none, so that the answer is no: nothing is put in, and whoever else, of all
// tracers of the machine, leaves one of the places takes the breakpoint out. A perf
// event at the same place that is attached to another thread wants it.
func (k *kernel) hold(p *plan.Plan, tid int) error {
	groups := heldGroups(k.probed, tid)
	if err := k.keeper.Hold(groups); err != nil {
		return fmt.Errorf("hold the probes: %w", host.PerfRefused(err))
	}
	if k.Functions != nil {
		if err := k.Functions.hold(tid); err != nil {
			return err
		}
	}
	p.Options.Logf("process %d: the main thread has ended, thread %d holds the probes", p.Target.PID, tid)
	return nil
}

// heldGroups returns groups that have each place of some probes once.
func heldGroups(probed []probeGroup, tid int) []keeper.Group {
	type place struct {
		file   int
		offset uint64
	}
	seen := map[place]bool{}
	var groups []keeper.Group
	for i := range probed {
		g := &probed[i]
		held := keeper.Group{File: g.File, PID: tid}
		for _, s := range g.Sites {
			if at := (place{g.File, s.Offset}); !seen[at] {
				seen[at] = true
				held.Sites = append(held.Sites, keeper.Site{Offset: s.Offset})
			}
		}
		if len(held.Sites) > 0 {
			groups = append(groups, held)
		}
	}
	return groups
}

package tracer

import (
	"fmt"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/keeper"
	"rtrace-bpf/tracer/plan"
)

// hold keeps the probes of uprobe_multi links in a process whose main thread has ended,
// with the help of thread tid, which continues. The error is ESRCH if that thread has
// ended.
//
// The kernel inserts a breakpoint only if the memory of the link's main thread is that of
// the process (uprobe_multi_link_filter in kernel/trace/bpf_trace.c). A main thread that
// has ended has no memory, so the kernel inserts nothing, and any tracer of the machine
// that detaches from the same place removes the breakpoint. A perf event at the place,
// attached to another thread, keeps it there.
func (k *kernel) hold(p *plan.Plan, tid int) error {
	groups := heldGroups(k.probed, tid)
	if err := k.keeper.Hold(groups); err != nil {
		return fmt.Errorf("hold the probes: %w", host.PerfRefused(err))
	}
	if k.functions != nil {
		if err := k.functions.hold(tid); err != nil {
			return err
		}
	}
	p.Options.Logf("process %d: the main thread has ended, thread %d holds the probes", p.Target.PID, tid)
	return nil
}

// heldGroups returns groups with each place of the probes once, for thread tid.
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

package probe

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
)

// Probes are all probes of a trace: those of the allocators, which one keeper holds, and
// those of traced functions. They implement governor.Probes. Their methods must not be
// called concurrently, except Thread and Wake.
type Probes struct {
	Functions *Functions // nil without traced functions
	plan      *plan.Plan
	kept      *keptProbes
	gaps      *ebpf.Variable // how often the probes were attached again, for the programs
	attached  uint32         // that number
	thread    atomic.Int32   // that the perf events are attached to
}

// New returns the probes of a plan; none is attached yet.
func New(p *plan.Plan) *Probes { return &Probes{plan: p} }

// Start starts the process that holds the probes. It takes some ten milliseconds.
func (p *Probes) Start() (err error) {
	p.kept, err = keep()
	return err
}

// Attach attaches the allocators' probes for the first time. Later it increments gaps, a
// variable of the programs, each time it attaches them again. gaps may be nil if it never
// does.
func (p *Probes) Attach(placements []plan.Placement, gaps *ebpf.Variable) error {
	p.gaps = gaps
	if err := p.equip(placements); err != nil {
		return err
	}
	return p.attach((*keptProbes).attach)
}

// equip opens the files and passes them to the keeper, which keeps them open. When the
// probes are attached again, another file may have the path, or the thread whose /proc
// entry is in the path may have ended.
func (p *Probes) equip(placements []plan.Placement) (err error) {
	kit := newKit(p.plan)
	defer func() { err = errors.Join(err, kit.Close()) }()
	for i := range placements {
		at := &placements[i]
		for j := range at.Probes {
			probe := &at.Probes[j]
			file, err := kit.file(probe)
			if err != nil {
				return err
			}
			cookie := probe.Site
			if at.Ret {
				cookie = 0 // by which a program recognises a return
			}
			kit.add(at.Program, cookie, file, probe, at.Ret)
		}
	}
	return p.kept.equip(kit)
}

// attach attaches the allocators' probes in the given way, to a thread that continues.
func (p *Probes) attach(way func(k *keptProbes, process, thread int) error) error {
	process := p.plan.Target.PID
	tid := process // never 0, which would mean all processes
	if carrier, _ := p.plan.Target.Carrier(); carrier != 0 {
		tid = carrier
	}
	p.thread.Store(int32(tid))
	if err := way(p.kept, process, tid); err != nil {
		return p.explain(err)
	}
	if p.Outlive() && tid != process {
		// The main thread has ended, so the kernel has inserted nothing.
		return p.Hold(tid)
	}
	return nil
}

// explain adds the probes to an error of the keeper.
func (p *Probes) explain(err error) error {
	g, probe := p.kept.failed(err)
	switch {
	case g == nil:
		return err
	case g.Multi:
		return fmt.Errorf("attach %d probes to %s: %w", len(g.probes), g.probes[0].Path, err)
	}
	return fmt.Errorf("attach probe to %s of %s: %w", probe.Function, probe.Path, host.PerfRefused(err))
}

// AttachFunctions attaches the probes of the traced functions that the plan found, and
// switches their programs on.
func (p *Probes) AttachFunctions() error {
	if p.Functions == nil {
		return nil
	}
	if err := p.Functions.attach(p.plan.Functions.Probes, p.Thread()); err != nil {
		return err
	}
	return p.Functions.functions.Enable()
}

// Thread returns the thread that the perf events are attached to.
func (p *Probes) Thread() int { return int(p.thread.Load()) }

// Outlive reports whether probes stay after the thread that they are attached to ended.
func (p *Probes) Outlive() bool { return p.plan.Mechanisms.Attach == host.MechanismMulti }

// Detach removes the allocators' probes.
func (p *Probes) Detach() error { return p.kept.keeper.Detach() }

// Reattach attaches the probes that Detach removed. The programs forget the calls that
// were open then.
func (p *Probes) Reattach() error { return p.again((*keptProbes).attach) }

// Revive is Reattach for perf events whose thread has ended: no program runs for them any
// more. Removing them takes seconds.
func (p *Probes) Revive() error {
	if err := p.again((*keptProbes).replace); err != nil || p.Functions == nil {
		return err
	}
	return p.Functions.replace(p.Thread())
}

func (p *Probes) again(way func(k *keptProbes, process, thread int) error) error {
	p.attached++
	if err := p.gaps.Set(p.attached); err != nil {
		return fmt.Errorf("count a gap for the programs: %w", err)
	}
	return p.attach(way)
}

// Hold keeps the probes of uprobe_multi links in a process whose main thread has ended,
// with the help of thread tid, which continues. The error is ESRCH if that thread has
// ended.
//
// The kernel inserts a breakpoint only if the memory of the link's main thread is that of
// the process (uprobe_multi_link_filter in kernel/trace/bpf_trace.c). A main thread that
// has ended has no memory, so the kernel inserts nothing, and any tracer of the machine
// that detaches from the same place removes the breakpoint. A perf event at the place,
// attached to another thread, keeps it there.
func (p *Probes) Hold(tid int) error {
	if err := p.kept.hold(tid); err != nil {
		return err
	}
	if p.Functions != nil {
		if err := p.Functions.hold(tid); err != nil {
			return err
		}
	}
	p.plan.Options.Logf("process %d: the main thread has ended, thread %d holds the probes", p.plan.Target.PID, tid)
	return nil
}

// Breakpoints finds all probes in the memory of a thread. The caller must close the
// result.
func (p *Probes) Breakpoints(tid int) (*Breakpoints, error) {
	groups := p.kept.groups
	if p.Functions != nil {
		groups = slices.Concat(groups, p.Functions.groups())
	}
	return findBreakpoints(groups, tid)
}

// Keeper returns the ID of the process that holds the allocators' probes, and a
// descriptor that is readable when it has ended.
func (p *Probes) Keeper() (pid, fd int) { return p.kept.keeper.PID(), p.kept.keeper.FD() }

// MoveTime returns the CPU time for attaching and detaching the allocators' probes so far. It may be
// called concurrently.
func (p *Probes) MoveTime() time.Duration { return p.kept.keeper.Used() }

// Wake resumes the process that holds the probes if a signal stopped it.
func (p *Probes) Wake() { p.kept.keeper.Wake() }

// Leave has the keeper remove the allocators' probes, without waiting for it.
func (p *Probes) Leave() error {
	err := p.kept.keeper.Leave()
	p.kept = nil
	return err
}

// Close removes the probes.
func (p *Probes) Close() error {
	var all []error
	if p.Functions != nil {
		all = append(all, p.Functions.Close())
	}
	if p.kept != nil {
		all = append(all, p.kept.keeper.Close())
	}
	return errors.Join(all...)
}

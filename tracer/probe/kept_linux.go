package probe

import (
	"errors"
	"fmt"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/keeper"
	"rtrace-bpf/tracer/plan"
)

// keptProbes is a keeper and the probes that it attaches.
type keptProbes struct {
	keeper *keeper.Keeper
	groups []probeGroup
}

// keep starts a keeper without probes. The caller must close it.
func keep() (*keptProbes, error) {
	k, err := keeper.Start()
	if err != nil {
		return nil, err
	}
	return &keptProbes{keeper: k}, nil
}

// equip passes a kit to the keeper, once.
func (k *keptProbes) equip(kit *kit) error {
	k.groups = kit.groups
	return k.keeper.Give(kit.programs, kit.files)
}

// attach attaches the probes: perf events to a thread, uprobe_multi links to the process.
func (k *keptProbes) attach(process, thread int) error {
	return k.keeper.Attach(k.addressed(process, thread))
}

// replace is attach for perf events whose thread has ended.
func (k *keptProbes) replace(process, thread int) error {
	return k.keeper.Replace(k.addressed(process, thread))
}

// addressed returns the groups, with the thread or process that they attach to.
func (k *keptProbes) addressed(process, thread int) []keeper.Group {
	all := make([]keeper.Group, len(k.groups))
	for i := range all {
		all[i] = k.groups[i].Group
		all[i].PID = thread
		if all[i].Multi {
			all[i].PID = process
		}
	}
	return all
}

// hold has a thread hold the breakpoints; see Probes.Hold.
func (k *keptProbes) hold(tid int) error {
	if err := k.keeper.Hold(k.held(tid)); err != nil {
		return fmt.Errorf("hold the probes: %w", host.PerfRefused(err))
	}
	return nil
}

// held returns groups with each place of the probes once, for thread tid.
func (k *keptProbes) held(tid int) []keeper.Group {
	type place struct {
		file   int
		offset uint64
	}
	seen := map[place]bool{}
	var groups []keeper.Group
	for i := range k.groups {
		g := &k.groups[i]
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

// failed returns the group and the probe that an error of the keeper is about; nil if it
// is not about a probe. For uprobe_multi links the probe is the group's first.
func (k *keptProbes) failed(err error) (*probeGroup, *plan.Probe) {
	var failed *keeper.Error
	if !errors.As(err, &failed) {
		return nil, nil
	}
	g := &k.groups[failed.Group]
	return g, &g.probes[min(failed.Site, len(g.probes)-1)]
}

package tracer

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"

	"rtrace-bpf/tracer/activity"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/keeper"
	"rtrace-bpf/tracer/mapofmaps"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/tables"
)

// kernel holds what a tracer has in the kernel.
type kernel struct {
	objects   object.ProbeObjects
	registry  tables.Registry
	tables    *tables.Tables
	follower  *tables.Follower // nil if there are no unwind tables
	sources   []order.Source
	grace     *order.Grace       // for perf buffers; nil for ring buffers
	activity  *activity.Activity // nil if no activity is recorded
	functions *functionProbes    // nil without traced functions
	sideband  *order.Sideband
	losses    *order.LossCounters
	keeper    *keeper.Keeper
	equipped  bool         // the keeper has programs and files
	probed    []probeGroup // the probes that the keeper attaches
	gaps      uint32       // number of gaps: how often the probes were attached again
	// generation makes the programs read their settings again, see bpf/state.h. The
	// collector and the reader both increment it.
	generation atomic.Uint32
	inner      innerMaps

	task atomic.Int32 // thread that the perf events are attached to

	switching sync.Mutex // guards over, and the programs' switch
	over      bool       // the programs stay switched off
}

// innerMaps describes the maps that are made while tracing.
type innerMaps struct {
	table, space *ebpf.MapSpec
}

// attach loads the programs, opens the rings and attaches the probes of p. The caller
// must close the kernel.
func attach(p *plan.Plan) (*kernel, error) {
	k := &kernel{}
	if err := k.attach(p); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

func (k *kernel) attach(p *plan.Plan) error {
	cpus, err := host.OnlineCPUs()
	if err != nil {
		return err
	}
	host.MeasureInBackground(p.Mechanisms.Attach)
	err = k.load(p, cpus,
		k.startKeeper,
		func() error { return k.openRings(p, cpus) },
		func() error { return k.register(p) },
	)
	if err != nil {
		return err
	}
	if err := k.putSites(p); err != nil {
		return err
	}
	size := p.Options.RingBytes(len(cpus))
	if err := k.openActivity(p, cpus, size); err != nil {
		return err
	}
	if err := k.openFunctions(p, cpus, size); err != nil {
		return err
	}
	if k.sideband, err = order.OpenSideband(p, cpus); err != nil {
		return err
	}
	if err := k.probe(p, false); err != nil {
		return err
	}
	k.losses = &order.LossCounters{
		Counters: k.objects.Losses, Work: k.objects.Work,
		Programs: []*ebpf.Program{k.objects.Enter, k.objects.Leave, k.objects.LeaveAt, k.objects.HandOver, k.objects.Grow, k.objects.Grown},
		Activity: k.activity,
	}
	if k.functions != nil {
		k.losses.Calls = k.functions.losses
	}
	if err := k.watch(cpus); err != nil {
		return err
	}
	if k.functions != nil {
		if err := k.functions.attach(p.Functions.Probes, int(k.task.Load())); err != nil {
			return err
		}
		if err := k.functions.functions.Enable(); err != nil {
			return err
		}
	}
	return k.enable()
}

// load makes the maps, and loads the programs while it runs the steps in parallel, which
// do not need the programs. Each takes some ten milliseconds.
func (k *kernel) load(p *plan.Plan, cpus []int, parallel ...func() error) error {
	programs, err := k.makeMaps(p, cpus)
	if err != nil {
		return err
	}
	loading := func() error { return programs.load(&k.objects.ProbePrograms) }
	err = atOnce(append([]func() error{loading}, parallel...)...)
	p.Preparation = plan.Preparation{} // it is large
	return errors.Join(err, programs.Close())
}

// makeMaps makes the maps and returns the programs that remain to be loaded.
func (k *kernel) makeMaps(p *plan.Plan, cpus []int) (*programs, error) {
	o := p.Options
	spec, err := p.Preparation.Object()
	if err != nil {
		return nil, fmt.Errorf("read BPF object: %w", err)
	}
	ringSize := o.RingBytes(len(cpus))
	settings := map[string]any{
		"cfg_task_storage":  p.Mechanisms.State == plan.StateTask,
		"cfg_no_storage":    o.Testing.NoStorage,
		"cfg_cookies":       p.Mechanisms.Sites == plan.SitesCookie,
		"cfg_perf_buffer":   o.Buffer == plan.BufferPerf,
		"cfg_backtrace_all": o.BacktraceAll,
		"cfg_args":          o.Args,
		"cfg_min_size":      o.MinSize,
		"cfg_depth":         uint32(o.Frames()),
		"cfg_unwind":        o.Unwind.BPF(),
		"cfg_verify":        uint32(o.VerifyUnwind),
		"cfg_stack_cache":   o.Unwind != plan.UnwindHelper && !o.Testing.NoStackCache,
		"cfg_wake_at":       uint64(ringSize / 2),
		"cfg_page_size":     uint64(os.Getpagesize()),
		"cfg_address_mask":  uint64(1)<<p.Target.AddressBits - 1,
	}
	if ns := p.Namespace; ns != nil {
		settings["cfg_pid_namespace"] = true
		settings["cfg_pidns_dev"] = ns.Dev
		settings["cfg_pidns_ino"] = ns.Inode
	}
	for name, value := range settings {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
	}
	spec.Maps["rings"].MaxEntries = uint32(cpus[len(cpus)-1] + 1)
	spec.Maps["rings"].InnerMap.MaxEntries = uint32(ringSize)
	spec.Maps["perf_rings"].MaxEntries = uint32(cpus[len(cpus)-1] + 1)
	if p.Mechanisms.State == plan.StateTask {
		spec.Maps["threads_by_tid"].MaxEntries = plan.SparedThreads
	} else {
		// The programs do not use the map then, but the kernel requires one.
		t := spec.Maps["threads"]
		t.Type, t.MaxEntries, t.Key, t.Value = ebpf.Hash, 1, nil, nil
		t.KeySize = 4
		spec.Maps["threads_by_tid"].MaxEntries = plan.HashedThreads
	}
	if o.Testing.FewThreads > 0 {
		spec.Maps["threads_by_tid"].MaxEntries = o.Testing.FewThreads
	}
	if p.Mechanisms.Sites == plan.SitesAddress {
		spec.Maps["sites"].MaxEntries = max(1, uint32(len(p.Layout.SiteTable())))
	}
	if p.Mechanisms.Bounded || o.Frames() == 0 {
		spec.Maps["stack_cache"].MaxEntries = 1
	}
	k.inner = innerMaps{table: spec.Maps["tables"].InnerMap, space: spec.Maps["spaces"].InnerMap}
	p.Layout.Empty(spec, &p.Options)
	if p.Mechanisms.Attach == host.MechanismMulti {
		for _, program := range spec.Programs {
			program.AttachType = ebpf.AttachTraceUprobeMulti
		}
	}
	made := &programs{
		specs: spec.Programs, types: p.Preparation.Types,
		options: ebpf.ProgramOptions{LogLevel: o.Testing.VerifierLog},
	}
	spec.Programs = nil
	if made.own, err = ebpf.NewCollection(spec); err != nil {
		return nil, loadError(err)
	}
	made.maps = maps.Clone(made.own.Maps)
	if err := errors.Join(made.own.Assign(&k.objects.ProbeMaps), made.own.Assign(&k.objects.ProbeVariables)); err != nil {
		return nil, errors.Join(loadError(err), made.Close())
	}
	return made, nil
}

// register writes the process's entry for the programs, and installs its unwind tables,
// before the first program runs.
func (k *kernel) register(p *plan.Plan) error {
	t := p.Target
	k.registry = tables.Registry{PID: uint32(t.PID), Targets: k.objects.Targets, Renew: k.renew}
	for i := range t.Texts {
		x := &k.registry.Process.Texts[i]
		x.Start, x.End = t.Texts[i].Code.Start, t.Texts[i].Code.End
	}
	if p.Options.Frames() == 0 || !p.Options.Unwind.Tables() {
		return k.registry.Put()
	}
	var err error
	if k.tables, err = tables.New(mapofmaps.New(k.objects.Tables), k.objects.Rules, k.inner.table); err != nil {
		return err
	}
	k.follower = tables.NewFollower(&tables.Space{
		Target: t, Tables: k.tables, Outer: mapofmaps.New(k.objects.Spaces), Inner: k.inner.space,
		Log: p.Options.Logf, Warn: p.Options.Warnf,
	}, k.registry.Remap)
	return k.follower.Look()
}

// forget deletes the programs' state for a thread that has ended. The kernel frees task
// storage itself.
func (k *kernel) forget(tid uint32) {
	// There is no entry if the thread made no calls, or had task storage.
	_ = k.objects.ThreadsByTid.Delete(tid)
}

func (k *kernel) openRings(p *plan.Plan, cpus []int) (err error) {
	size := p.Options.RingBytes(len(cpus))
	if p.Options.Buffer == plan.BufferPerf {
		k.grace = order.StartGrace(func() error { return order.GracePeriod(cpus) })
		k.sources, err = order.OpenPerfRings(k.objects.PerfRings, cpus, size, k.grace)
	} else {
		k.sources, err = order.OpenRings(k.objects.Rings, cpus, size)
	}
	return err
}

// installed returns the mappings whose unwind tables are in the kernel, and whether the
// programs use tables.
func (k *kernel) installed() (all []process.Mapping, tables bool) {
	if k.follower == nil {
		return nil, false
	}
	return k.follower.Space.Mappings(), true
}

// leave has the keeper remove the probes, without waiting for it.
func (k *kernel) leave() error {
	err := k.keeper.Leave()
	k.keeper = nil
	return err
}

// Close removes the probes and frees everything else.
func (k *kernel) Close() error {
	var all []error
	if k.functions != nil {
		all = append(all, k.functions.Close())
	}
	if k.keeper != nil {
		all = append(all, k.keeper.Close())
	}
	if k.follower != nil {
		all = append(all, k.follower.Close())
	}
	if k.tables != nil {
		all = append(all, k.tables.Close())
	}
	if k.sideband != nil {
		all = append(all, k.sideband.Close())
	}
	if k.activity != nil {
		all = append(all, k.activity.Close())
	}
	all = append(all, order.CloseSources(k.sources))
	k.sources = nil
	if k.grace != nil {
		all = append(all, k.grace.Close())
		k.grace = nil
	}
	if k.objects.Targets != nil {
		all = append(all, k.objects.Close())
	}
	return errors.Join(all...)
}

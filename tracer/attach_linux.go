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
	"rtrace-bpf/tracer/keeper"
)

// kernel is what a tracer has in the kernel.
type kernel struct {
	objects  probeObjects
	registry registry
	tables   *tables
	follower *follower // nil without unwind tables
	sources  []source
	grace    *grace             // of perf buffers; nil without
	activity *activity.Activity // nil: none of it is recorded
	named    *namedCalls        // nil: no functions are named
	sideband *sideband
	losses   *lossCounters
	keeper   *keeper.Keeper
	equipped bool         // the keeper has programs and files
	probed   []probeGroup // what it attaches
	pauses   uint32       // how often the probes were put in again
	// generation makes the programs look anew, see bpf/state.h. The collector
	// and the reader both raise it.
	generation atomic.Uint32
	inner      innerMaps

	task atomic.Int32 // thread that the perf events are attached to

	switching sync.Mutex // of enabled and over
	over      bool       // the programs stay off
}

// innerMaps describe the maps that are made while tracing.
type innerMaps struct {
	table, space *ebpf.MapSpec
}

// attach loads the programs, opens the rings and puts the probes of plan in.
func attach(p *Plan) (*kernel, error) {
	k := &kernel{}
	if err := k.attach(p); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

func (k *kernel) attach(p *Plan) error {
	cpus, err := onlineCPUs()
	if err != nil {
		return err
	}
	measureInBackground(p.Mechanism())
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
	size := p.options.ringBytes(len(cpus))
	if err := k.openActivity(p, cpus, size); err != nil {
		return err
	}
	if err := k.openNamed(p, cpus, size); err != nil {
		return err
	}
	if k.sideband, err = openSideband(p, cpus); err != nil {
		return err
	}
	if err := k.probe(p, false); err != nil {
		return err
	}
	k.losses = &lossCounters{
		counters: k.objects.Losses, work: k.objects.Work,
		programs: []*ebpf.Program{k.objects.Enter, k.objects.Leave, k.objects.LeaveAt, k.objects.HandOver, k.objects.Grow, k.objects.Grown},
		activity: k.activity,
	}
	if k.named != nil {
		k.losses.calls = k.named.losses
	}
	if err := k.watch(cpus); err != nil {
		return err
	}
	if k.named != nil {
		if err := k.named.attach(p.named, int(k.task.Load())); err != nil {
			return err
		}
		if err := k.named.functions.Enable(); err != nil {
			return err
		}
	}
	return k.enable()
}

// load makes the maps, and loads the programs while steps are taken that do not need
// these: each takes some ten milliseconds.
func (k *kernel) load(p *Plan, cpus []int, beside ...func() error) error {
	programs, err := k.makeMaps(p, cpus)
	if err != nil {
		return err
	}
	loading := func() error { return programs.load(&k.objects.probePrograms) }
	err = together(append([]func() error{loading}, beside...)...)
	p.preparation = preparation{} // it is large
	return errors.Join(err, programs.Close())
}

// makeMaps makes the maps and returns the programs, which are to be loaded.
func (k *kernel) makeMaps(p *Plan, cpus []int) (*programs, error) {
	o := p.options
	spec, err := p.preparation.object()
	if err != nil {
		return nil, fmt.Errorf("read BPF object: %w", err)
	}
	ringSize := o.ringBytes(len(cpus))
	settings := map[string]any{
		"cfg_task_storage":  p.state == StateTask,
		"cfg_no_storage":    o.testing.noStorage,
		"cfg_cookies":       p.sites == SitesCookie,
		"cfg_perf_buffer":   o.Buffer == BufferPerf,
		"cfg_backtrace_all": o.BacktraceAll,
		"cfg_args":          o.Args,
		"cfg_min_size":      o.MinSize,
		"cfg_depth":         uint32(o.frames()),
		"cfg_unwind":        o.Unwind.bpf(),
		"cfg_verify":        uint32(o.VerifyUnwind),
		"cfg_stack_cache":   o.Unwind != UnwindHelper && !o.testing.noStackCache,
		"cfg_wake_at":       uint64(ringSize / 2),
		"cfg_page_size":     uint64(os.Getpagesize()),
		"cfg_address_mask":  uint64(1)<<p.target.addressBits - 1,
	}
	if ns := p.namespace; ns != nil {
		settings["cfg_pid_namespace"] = true
		settings["cfg_pidns_dev"] = ns.dev
		settings["cfg_pidns_ino"] = ns.inode
	}
	for name, value := range settings {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
	}
	spec.Maps["rings"].MaxEntries = uint32(cpus[len(cpus)-1] + 1)
	spec.Maps["rings"].InnerMap.MaxEntries = uint32(ringSize)
	spec.Maps["perf_rings"].MaxEntries = uint32(cpus[len(cpus)-1] + 1)
	if p.state == StateTask {
		spec.Maps["threads_by_tid"].MaxEntries = sparedThreads
	} else {
		// The programs never touch the map then, but the kernel wants one to exist.
		t := spec.Maps["threads"]
		t.Type, t.MaxEntries, t.Key, t.Value = ebpf.Hash, 1, nil, nil
		t.KeySize = 4
		spec.Maps["threads_by_tid"].MaxEntries = hashedThreads
	}
	if o.testing.fewThreads > 0 {
		spec.Maps["threads_by_tid"].MaxEntries = o.testing.fewThreads
	}
	if p.sites == SitesAddress {
		spec.Maps["sites"].MaxEntries = max(1, uint32(len(p.siteTable())))
	}
	if p.bounded || o.frames() == 0 {
		spec.Maps["stack_cache"].MaxEntries = 1
	}
	k.inner = innerMaps{table: spec.Maps["tables"].InnerMap, space: spec.Maps["spaces"].InnerMap}
	p.empty(spec)
	if p.Mechanism() == MechanismMulti {
		for _, program := range spec.Programs {
			program.AttachType = ebpf.AttachTraceUprobeMulti
		}
	}
	made := &programs{
		specs: spec.Programs, types: p.preparation.types,
		options: ebpf.ProgramOptions{LogLevel: o.testing.verifierLog},
	}
	spec.Programs = nil
	if made.own, err = ebpf.NewCollection(spec); err != nil {
		return nil, loadError(err)
	}
	made.maps = maps.Clone(made.own.Maps)
	if err := errors.Join(made.own.Assign(&k.objects.probeMaps), made.own.Assign(&k.objects.probeVariables)); err != nil {
		return nil, errors.Join(loadError(err), made.Close())
	}
	return made, nil
}

// register tells the programs what they need to know of the process. Its
// unwind tables are there when the first program runs.
func (k *kernel) register(p *Plan) error {
	t := p.target
	k.registry = registry{pid: uint32(t.pid), targets: k.objects.Targets, renew: k.renew}
	for i := range t.texts {
		x := &k.registry.process.Texts[i]
		x.Start, x.End = t.texts[i].code.start, t.texts[i].code.end
	}
	if p.options.frames() == 0 || !p.options.Unwind.tables() {
		return k.registry.put()
	}
	var err error
	if k.tables, err = newTables(newOuter(k.objects.Tables), k.objects.Rules, k.inner.table); err != nil {
		return err
	}
	k.follower = newFollower(&space{
		target: t, tables: k.tables, outer: newOuter(k.objects.Spaces), inner: k.inner.space,
		log: p.options.logf, warn: p.options.warnf,
	}, k.registry.remap)
	return k.follower.look()
}

// forget deletes what the programs keep of a thread that has ended. Task
// storage goes by itself.
func (k *kernel) forget(tid uint32) {
	// It is not there if the thread has called nothing, or had task storage.
	_ = k.objects.ThreadsByTid.Delete(tid)
}

func (k *kernel) openRings(p *Plan, cpus []int) (err error) {
	size := p.options.ringBytes(len(cpus))
	if p.options.Buffer == BufferPerf {
		k.grace = startGrace(func() error { return gracePeriod(cpus) })
		k.sources, err = openPerfRings(k.objects.PerfRings, cpus, size, k.grace)
	} else {
		k.sources, err = openRings(k.objects.Rings, cpus, size)
	}
	return err
}

// installed returns the mappings whose unwind tables are in the kernel, and whether the
// programs use tables at all.
func (k *kernel) installed() (all []mapping, tables bool) {
	if k.follower == nil {
		return nil, false
	}
	return k.follower.space.mappings(), true
}

// leave has the probes removed, without waiting for that.
func (k *kernel) leave() error {
	err := k.keeper.Leave()
	k.keeper = nil
	return err
}

// Close removes the probes and frees the rest.
func (k *kernel) Close() error {
	var all []error
	if k.named != nil {
		all = append(all, k.named.Close())
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
	all = append(all, closeSources(k.sources))
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

package tracer

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/activity"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/probe"
	"rtrace-bpf/tracer/programs"
)

// kernel holds what a tracer has in the kernel.
type kernel struct {
	programs  programs.Programs
	unwinding unwinding
	rings     rings
	activity  *activity.Activity // nil if no activity is recorded
	sideband  *order.Sideband
	losses    *order.LossCounters
	probes    *probe.Probes
	faults    []io.Closer // what has the kernel run the programs for page faults
}

// newKernel returns a kernel in which nothing is attached.
func newKernel(p *plan.Plan) *kernel { return &kernel{probes: probe.New(p)} }

// attach loads the programs, opens the rings and attaches the probes of p. The caller must
// close the kernel, also after an error.
func (k *kernel) attach(p *plan.Plan) error {
	cpus, err := host.OnlineCPUs()
	if err != nil {
		return err
	}
	host.MeasureInBackground(p.Mechanisms.Attach)
	err = k.programs.Load(p, cpus,
		k.probes.Start,
		func() error { return k.rings.open(p, &k.programs, cpus) },
		func() error { return k.unwinding.register(p, &k.programs) },
	)
	if err != nil {
		return err
	}
	if err := k.programs.PutSites(p); err != nil {
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
	if err := k.attachProbes(p); err != nil {
		return err
	}
	k.countLosses()
	if err := k.watch(cpus); err != nil {
		return err
	}
	if err := k.probes.AttachFunctions(); err != nil {
		return err
	}
	if err := k.attachFaults(p); err != nil {
		return err
	}
	if p.Options.Budget > 0 {
		return nil // the first window does
	}
	return k.programs.Switch.Enable()
}

// openActivity loads the programs that record activity, if the plan asks for it, and
// opens their rings. Their rings are BPF ring buffers even if calls use perf buffers.
func (k *kernel) openActivity(p *plan.Plan, cpus []int, size int) error {
	if !p.Options.Activity.Any() {
		return nil
	}
	if p.Options.Activity.Record == nil {
		return errors.New("activity is selected, but Options.Activity.Record is nil")
	}
	t := activity.Target{PID: uint32(p.Target.PID)}
	if ns := p.Namespace; ns != nil {
		t.NamespaceDev, t.NamespaceInode = ns.Dev, ns.Inode
	}
	var err error
	k.activity, err = activity.Load(t, p.Options.Activity, cpus[len(cpus)-1], size, p.Options.Testing.VerifierLog)
	if err != nil {
		return err
	}
	k.programs.Switch.Add(k.activity)
	sources, err := order.OpenRings(k.activity.Rings(), cpus, size)
	if err != nil {
		return err
	}
	for _, s := range sources {
		s.(*order.RingSource).Activity = k.activity
	}
	k.rings.add(sources)
	return nil
}

// openFunctions loads the programs for traced functions and opens their rings, if the
// plan traces functions.
func (k *kernel) openFunctions(p *plan.Plan, cpus []int, size int) error {
	if !p.Options.Calls() {
		return nil
	}
	f, err := probe.OpenFunctions(p, cpus, size, k.programs.CallStack, k.programs.ReturnedStack)
	if err != nil {
		return err
	}
	k.probes.Functions = f
	k.programs.Switch.Add(f)
	sources, err := f.Rings(cpus, size)
	if err != nil {
		return err
	}
	k.rings.add(sources)
	return nil
}

// attachProbes attaches the probes of the allocators.
func (k *kernel) attachProbes(p *plan.Plan) error {
	return k.probes.Attach(p.Layout.Placements(&k.programs.ProbeObjects), k.programs.Gaps)
}

// countLosses gathers the counters of all programs.
func (k *kernel) countLosses() {
	p := &k.programs
	k.losses = &order.LossCounters{
		Counters: p.Losses, Work: p.Work,
		Programs: []*ebpf.Program{p.Enter, p.Leave, p.Pass, p.LeaveAt, p.HandOver, p.Grow, p.Grown, p.UserFault, p.CountedFault, p.AreaFound},
		Activity: k.activity,
	}
	if f := k.probes.Functions; f != nil {
		k.losses.Calls = f.Losses
	}
}

// watch starts to record activity.
func (k *kernel) watch(cpus []int) error {
	if k.activity == nil {
		return nil
	}
	err := k.activity.Attach(cpus)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w: %w CAP_SYS_ADMIN, which this kernel requires for it", err, host.ErrNotPrivileged)
	}
	return err
}

// Close removes the probes and frees everything else.
func (k *kernel) Close() error {
	var all []error
	if k.probes != nil {
		all = append(all, k.probes.Close())
	}
	for _, l := range k.faults {
		all = append(all, l.Close())
	}
	all = append(all, k.unwinding.Close())
	if k.sideband != nil {
		all = append(all, k.sideband.Close())
	}
	if k.activity != nil {
		all = append(all, k.activity.Close())
	}
	return errors.Join(append(all, k.rings.Close(), k.programs.Close())...)
}

package tracer

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/activity"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

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
	sources, err := order.OpenRings(k.activity.Rings(), cpus, size)
	if err != nil {
		return err
	}
	for _, s := range sources {
		s.(*order.RingSource).Activity = k.activity
	}
	k.sources = append(k.sources, sources...)
	return nil
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

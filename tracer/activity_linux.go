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

// openActivity loads the programs that see what the process does beside allocations,
// if that is wanted, and opens their rings, whatever way the calls take.
func (k *kernel) openActivity(p *plan.Plan, cpus []int, size int) error {
	if !p.Options.Activity.Any() {
		return nil
	}
	if p.Options.Activity.Record == nil {
		return errors.New("nobody makes records of what the process does")
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

// watch begins to record it.
func (k *kernel) watch(cpus []int) error {
	if k.activity == nil {
		return nil
	}
	err := k.activity.Attach(cpus)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w: %w CAP_SYS_ADMIN: this kernel wants it for that", err, host.ErrNotPrivileged)
	}
	return err
}

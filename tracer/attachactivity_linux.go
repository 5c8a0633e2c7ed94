package tracer

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/activity"
)

// openActivity loads the programs that see what the process does beside allocations,
// if that is wanted, and opens their rings, whatever way the calls take.
func (k *kernel) openActivity(p *Plan, cpus []int, size int) error {
	if !p.options.Activity.Any() {
		return nil
	}
	if p.options.Activity.Record == nil {
		return errors.New("nobody makes records of what the process does")
	}
	t := activity.Target{PID: uint32(p.target.pid)}
	if ns := p.namespace; ns != nil {
		t.NamespaceDev, t.NamespaceInode = ns.dev, ns.inode
	}
	var err error
	k.activity, err = activity.Load(t, p.options.Activity, cpus[len(cpus)-1], size, p.options.testing.verifierLog)
	if err != nil {
		return err
	}
	sources, err := openRings(k.activity.Rings(), cpus, size)
	if err != nil {
		return err
	}
	for _, s := range sources {
		s.(*ringSource).activity = k.activity
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
		return fmt.Errorf("%w: %w CAP_SYS_ADMIN: this kernel wants it for that", err, ErrNotPrivileged)
	}
	return err
}

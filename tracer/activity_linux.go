package tracer

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/activity"
)

// openActivity loads the programs that see what the process does beside allocations,
// if that is wanted, and opens their rings, whatever way the calls take.
func (k *kernel) openActivity(plan *Plan, cpus []int, size int) error {
	if !plan.options.Activity.Any() {
		return nil
	}
	if plan.options.Activity.Record == nil {
		return errors.New("nobody makes records of what the process does")
	}
	t := activity.Target{PID: uint32(plan.target.pid)}
	if ns := plan.namespace; ns != nil {
		t.NamespaceDev, t.NamespaceInode = ns.dev, ns.inode
	}
	var err error
	k.activity, err = activity.Load(t, plan.options.Activity, cpus[len(cpus)-1], size, plan.options.verifierLog)
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

// addActivity takes a record of these programs, for which e stands in the order of
// events. The numbers of a ring begin with the source's.
func (in *intake) addActivity(from *activity.Activity, record []byte, e *event) {
	var x activity.Event
	if !from.Decode(record, &x) {
		in.queue.drop()
		return
	}
	in.activityID++
	id := uint64(in.number)<<48 | in.activityID
	in.activities = append(in.activities, numberedActivity{id, x})
	*e = event{kind: kindActivity, time: x.Time, tid: x.TID, cpu: in.cpu, addr: id}
	in.queue.settle()
}

// numberedActivity is an event with the number by which its place in the order knows it.
type numberedActivity struct {
	id uint64
	activity.Event
}

// activity makes a record of an event and says whether there is one.
func (s *stream) activity(e *event, r *trace.Record) bool {
	x, ok := s.activities[e.addr]
	if !ok {
		return false
	}
	delete(s.activities, e.addr)
	r.Time, r.PID, r.TID, r.CPU = int64(e.time), s.pid, int32(e.tid), int32(e.cpu)+1
	return s.describeActivity(&x, r)
}

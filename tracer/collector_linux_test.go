package tracer

import (
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
)

// flood is a source that has more events than fit, for a number of polls.
type flood struct {
	event int // eventfd
	polls int // polls left
}

func (f *flood) Poll(now uint64, to *order.Intake) uint64 {
	if f.polls--; f.polls < 0 {
		return now
	}
	for to.Queue.Room() > 0 {
		to.Queue.Push(&order.Event{Kind: order.KindFree, Time: now})
	}
	return now
}

func (f *flood) Used() float64 { return 1 }
func (f *flood) FD() int       { return f.event }
func (f *flood) Close() error  { return unix.Close(f.event) }

// newEvent returns an eventfd.
func newEvent(t *testing.T) int {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// A reader that is slower than the process always leaves events in the rings. That must
// not delay the end of the recording.
func TestStopWhileTheRingsAreFull(t *testing.T) {
	counters := func(n uint32) *ebpf.Map {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, MaxEntries: n})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	const most = 20
	busy := &flood{event: newEvent(t), polls: most}
	exit := newEvent(t)
	c, err := newCollector([]order.Source{busy}, &order.Sideband{}, &process.Target{PIDFD: exit})
	if err != nil {
		t.Fatal(err)
	}
	left := -1
	c.disable = func() error { left = busy.polls; busy.polls = 0; return nil }
	c.losses = &order.LossCounters{Counters: counters(uint32(object.ProbeLossLOSS_COUNT)), Work: counters(uint32(object.ProbeWorkKindWORK_COUNT))}
	c.stop()
	go c.run()
	for b := range c.out {
		if b.Err != nil {
			t.Error(b.Err)
		}
	}
	if left != most-1 {
		t.Errorf("the end was seen after %d polls, want 1", most-left)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := busy.Close(); err != nil {
		t.Error(err)
	}
	if err := unix.Close(exit); err != nil {
		t.Error(err)
	}
}

// A list without mappings means that the process has ended, and unmaps nothing.
func TestSnapshotOfNothing(t *testing.T) {
	c := collector{snapshot: func() ([]process.Mapping, error) { return nil, nil }}
	c.addSnapshot()
	if c.sideCount != 0 {
		t.Errorf("%d sides were added", c.sideCount)
	}
}

package collector

import (
	"reflect"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/governor"
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
	left := -1
	c, err := New(&Links{
		Sources: []order.Source{busy}, Sideband: &order.Sideband{}, Target: &process.Target{PIDFD: exit},
		Disable: func() error { left = busy.polls; busy.polls = 0; return nil },
		Losses:  &order.LossCounters{Counters: counters(uint32(object.ProbeLossLOSS_COUNT)), Work: counters(uint32(object.ProbeWorkKindWORK_COUNT))},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Stop()
	go c.Run()
	for b := range c.Batches() {
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
	to := newOutlet(0)
	m := mappings{snapshot: func() ([]process.Mapping, error) { return nil, nil }}
	m.addSnapshot(to)
	if to.sides != 0 {
		t.Errorf("%d sides were added", to.sides)
	}
}

// What has been taken is known up to the last bound, but not while a batch waits.
func TestTaken(t *testing.T) {
	c := Collector{outlet: newOutlet(0)}
	c.outlet.pass(10)
	if got := c.Taken(); got != 10 {
		t.Errorf("taken up to %d, want 10", got)
	}
	c.addGap(governor.Gap{Until: 15})
	c.outlet.pass(20)
	if got := c.Taken(); got != 0 {
		t.Errorf("taken up to %d while a batch waits, want 0", got)
	}
	<-c.outlet.out
	if got := c.Taken(); got != 20 {
		t.Errorf("taken up to %d, want 20", got)
	}
}

// A gap has its place in the order where it ends.
func TestGapInTheOrder(t *testing.T) {
	to := newOutlet(0)
	c := Collector{outlet: to}
	c.addGap(governor.Gap{Since: 10, Until: 20, Reason: order.LossPaused})
	to.pass(19)
	to.pass(20)
	var got []*order.Batch
	for len(to.out) > 0 {
		got = append(got, <-to.out)
	}
	if len(got) != 2 || len(got[0].Events) != 0 || len(got[1].Events) != 1 {
		t.Fatalf("%d batches", len(got))
	}
	want := order.Side{Kind: order.SideGap, Time: 20, Seen: 10, Reason: order.LossPaused}
	if e := got[1].Events[0]; e.Time != 20 || e.Kind != order.KindSide || !reflect.DeepEqual(got[0].Sides, []order.Side{want}) {
		t.Errorf("event %+v, sides %+v", e, got[0].Sides)
	}
}

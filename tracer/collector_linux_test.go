package tracer

import (
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// flood is a source that has more events than fit, for some polls.
type flood struct {
	event int // an eventfd
	polls int // left
}

func (f *flood) poll(now uint64, to *intake) uint64 {
	if f.polls--; f.polls < 0 {
		return now
	}
	for to.queue.room() > 0 {
		to.queue.push(&event{kind: kindFree, time: now})
	}
	return now
}

func (f *flood) used() float64 { return 1 }
func (f *flood) fd() int       { return f.event }
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

// A reader that is slower than the process always leaves something in the rings.
// That must not put off the end of the recording.
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
	c, err := newCollector([]source{busy}, &sideband{}, &target{pidfd: exit})
	if err != nil {
		t.Fatal(err)
	}
	left := -1
	c.disable = func() error { left = busy.polls; busy.polls = 0; return nil }
	c.losses = &lossCounters{counters: counters(uint32(probeLossLOSS_COUNT)), work: counters(uint32(probeWorkKindWORK_COUNT))}
	c.stop()
	go c.run()
	for b := range c.out {
		if b.err != nil {
			t.Error(b.err)
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

// The end of a program, seen as a list without mappings, is no unmapping.
func TestSnapshotOfNothing(t *testing.T) {
	c := collector{snapshot: func() ([]mapping, error) { return nil, nil }}
	c.addSnapshot()
	if c.sideCount != 0 {
		t.Errorf("%d records were told", c.sideCount)
	}
}

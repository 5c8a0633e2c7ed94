package tracer

import (
	"io"
	"testing"
	"time"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
)

func TestCost(t *testing.T) {
	c := host.Costs{Entry: 500, Return: 300}
	h := host.Hits{Entries: 5, Returns: 3, Inside: 200}.Since(host.Hits{Entries: 1, Returns: 1, Inside: 100})
	if got := c.Cost(h); got != 2700*time.Nanosecond {
		t.Errorf("%v, want 2.7µs", got)
	}
}

// The cost of a probe can be measured with each mechanism, and is not zero.
func TestMeasureCosts(t *testing.T) {
	testutil.NeedBPF(t)
	for _, m := range []host.Mechanism{host.MechanismMulti, host.MechanismPerf} {
		t.Run(m.String(), func(t *testing.T) {
			if err := (host.Kernel{}).UprobeMulti(); m == host.MechanismMulti && err != nil {
				t.Skipf("SKIPPED-KERNEL: %v", err)
			}
			c, err := host.MeasureCosts(m)
			if err != nil || c.Entry <= 0 || c.Return < 0 { // the cost of a return may be smaller than the variation
				t.Errorf("%+v, %v", c, err)
			}
			t.Logf("%v at an entry, %v at a return", c.Entry, c.Return)
		})
	}
}

// Each probe that is hit counts: two for malloc, one for free, whether the call is
// recorded, filtered by its size, or lost.
func TestHits(t *testing.T) {
	testutil.NeedBPF(t)
	const pairs = 1000
	for name, o := range map[string]plan.Options{"recorded": {}, "too small": {MinSize: 1 << 20}} {
		t.Run(name, func(t *testing.T) {
			child := testutil.Spawn(t, testutil.Build(t, "loop"), "1", "1000")
			child.Ready()
			o.PID = child.PID
			p, err := plan.New(o)
			if err != nil {
				t.Fatal(err)
			}
			tracer, err := Open(p)
			if err != nil {
				t.Fatal(err)
			}
			child.Go()
			child.Succeed()
			var r trace.Record
			for err == nil {
				err = tracer.ReadRecord(&r)
			}
			if err != io.EOF {
				t.Error(err)
			}
			h, err := tracer.Hits()
			if err != nil || h.Entries != 2*pairs || h.Returns != pairs || h.Inside <= 0 {
				t.Errorf("%+v, %v; want %d entries and %d returns", h, err, 2*pairs, pairs)
			}
			if c, known, err := tracer.Costs(true); err != nil || !known || c.Entry <= 0 {
				t.Errorf("%+v, known: %v, %v", c, known, err)
			}
			if err := tracer.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Each page fault that is recorded counts, and costs the time in the program alone.
func TestHitsOfFaults(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "faultloop"), "4000")
	child.Ready()
	o := plan.Options{PID: child.PID, Depth: plan.DefaultDepth}
	growth(&o)
	p, err := plan.New(o)
	if err != nil {
		t.Fatal(err)
	}
	tracer, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	child.Go()
	child.Succeed()
	var r trace.Record
	for err == nil {
		err = tracer.ReadRecord(&r)
	}
	if err != io.EOF {
		t.Error(err)
	}
	h, err := tracer.Hits()
	if err != nil || h.Entries != 0 || h.Returns != 0 || h.Faults < 4000 || h.Inside <= 0 {
		t.Errorf("%+v, %v; want no probes, and 4000 faults", h, err)
	}
	if got := (host.Costs{Entry: 500, Return: 300}).Cost(h); got != h.Inside {
		t.Errorf("they cost %v, want %v", got, h.Inside)
	}
	if err := tracer.Close(); err != nil {
		t.Error(err)
	}
}

package collector

import (
	"testing"

	"rtrace-bpf/tracer/order"
)

// While the reader is slow, the outlet calls waits, which may add sides; these follow the batch that
// waits.
func TestSlowReader(t *testing.T) {
	o := newOutlet(0)
	for range cap(o.out) {
		o.send(order.NewBatch())
	}
	calls := 0
	o.waits = func() {
		if calls++; calls == 1 {
			o.addSide(&order.Side{Kind: order.SideWindow, Time: 7})
		} else if calls == 3 {
			<-o.out
		}
	}
	o.addSide(&order.Side{Kind: order.SideMark, Time: 5})
	b := o.batch()
	o.next = nil
	o.send(b)
	if calls != 3 {
		t.Errorf("waits was called %d times, want 3", calls)
	}
	for range cap(o.out) - 1 {
		<-o.out
	}
	if got := <-o.out; got != b || len(b.Sides) != 1 || b.Sides[0].Time != 5 {
		t.Errorf("%+v", got)
	}
	if b := o.batch(); len(b.Sides) != 1 || b.Sides[0].Time != 7 {
		t.Errorf("the next batch has %+v", b.Sides)
	}
}

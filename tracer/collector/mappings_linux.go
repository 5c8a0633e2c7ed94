package collector

import (
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/tables"
)

// mappings notifies what depends on the mappings of the process, and passes on what those
// and the dynamic loader report about them.
type mappings struct {
	snapshot  func() ([]process.Mapping, error) // reads the process's executable mappings
	follower  *tables.Follower                  // nil if there are no unwind tables
	functions func()                            // looks for traced functions; nil if there are none
}

// changed reports changed mappings, without saying how they changed.
func (m *mappings) changed() {
	if m.follower != nil {
		m.follower.Changed()
	}
	if m.functions != nil {
		m.functions()
	}
}

// mapped reports a record of the kernel that changes mappings.
func (m *mappings) mapped(x *order.Side) {
	if m.follower != nil {
		m.follower.Mapped(x)
	}
	if m.functions != nil {
		m.functions()
	}
}

// addSnapshot reads the mappings after the dynamic loader changed them. A mapping that is
// gone by now may have existed, and been called, a moment ago, so the result has its
// place in the order after the reading.
func (m *mappings) addSnapshot(to *outlet) {
	began := order.Clock()
	maps, err := m.snapshot()
	if err != nil || len(maps) == 0 {
		return // the process has ended, which unmaps nothing in the trace
	}
	to.addSide(&order.Side{Kind: order.SideSnapshot, Time: order.Clock(), Snapshot: maps, Seen: began})
}

// addTables passes on the tables that the follower installed. The programs may already
// have used them for a moment.
func (m *mappings) addTables(to *outlet) {
	if m.follower == nil {
		return
	}
	select {
	case x := <-m.follower.Ready:
		x.Time = order.Clock()
		to.addSide(&x)
	default:
	}
}

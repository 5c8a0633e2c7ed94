package tracer

import (
	"errors"
	"fmt"

	"rtrace-bpf/tracer/order"
)

// pollSideband reads the kernel's records about the process, and starts an audit if
// records were dropped.
func (c *collector) pollSideband(now uint64) {
	c.sides = c.sideband.Poll(append(c.sides[:0], c.early...))
	c.early = nil
	for i := range c.sides {
		c.takeSide(&c.sides[i])
	}
	if s := c.sideband.Subscription; s != nil && s.Ended() {
		c.renewSideband(max(c.lastExec, s.Since), c.lastExec < s.Since)
		if c.sideband.Subscription == s {
			s.Leaders = nil // the main thread has ended; others continue
		}
	}
	if c.sideband.Dropped {
		c.auditor.Ask(c.sideband.Since(), c.sideband.Doubt())
		c.sideband.Narrow()
		c.sideband.Settled()
	}
	c.auditor.Begin(now)
	if x, ok := c.auditor.End(); ok {
		c.addAudit(x)
	}
}

// takeSide passes on a record of the kernel and notifies what depends on it.
func (c *collector) takeSide(x *order.Side) {
	c.remaps++
	x.Number = c.remaps
	c.addSide(x)
	switch x.Kind {
	case order.SideExit:
		if c.governor != nil {
			c.governor.threadEnded(int(x.TID), x.Time)
		}
		if x.TID == x.PID {
			c.leaderEnded = true
			c.renewSideband(x.Time, false)
		}
	case order.SideExec:
		c.leaderEnded, c.lastExec, c.loading = false, x.Time, true
		if c.auditor.Spoiled(x.Time) {
			c.auditor.Ask(c.auditor.Since, c.auditor.Open)
		}
		c.notifyMapped(x)
	case order.SideMap:
		c.loading = false
		c.notifyMapped(x)
	}
}

// notifyMapped reports changed mappings to the follower and the function probes.
func (c *collector) notifyMapped(x *order.Side) {
	if c.follower != nil {
		c.follower.Mapped(x)
	}
	if c.functions != nil {
		c.functions.changed()
	}
}

// renewSideband checks whether a main thread continues after the record of its end. When
// a process executes a set-user-ID program, the kernel closes the main thread's events,
// which looks the same. renewSideband then subscribes to the process again, and adds its
// current mappings as records of that time. No call of the new program has been passed on
// yet. If unseen, the record of the exec itself may be missing, and is added as well.
func (c *collector) renewSideband(time uint64, unseen bool) {
	again, err := c.sideband.Renew()
	if err != nil {
		c.failed = errors.Join(c.failed, fmt.Errorf("watch mappings: %w", err))
		return
	}
	if !again {
		if c.loading && c.sideband.PerTask() { // its new program, and what it mapped before it ended, are not known
			c.auditor.Ask(c.lastExec, order.DoubtDropped)
		}
		return
	}
	c.leaderEnded = false
	began := order.Clock()
	all, err := c.auditor.Target.Mappings()
	if err != nil {
		return // the process has ended
	}
	pid := c.sideband.PID
	if threads := c.auditor.Target.Threads(); unseen && len(threads) > 0 {
		c.takeSide(&order.Side{Kind: order.SideExec, Time: time, PID: pid, TID: pid, Name: threads[0].Name})
	}
	for _, m := range all {
		m.Seen = began
		c.takeSide(&order.Side{Kind: order.SideMap, Time: time + 1, PID: pid, TID: pid, Mapping: m})
	}
}

// addAudit adds the result of an audit. As in addSnapshot, its place in the order is
// after the reading.
func (c *collector) addAudit(x order.Side) {
	x.Time = order.Clock()
	c.auditor.Ended = x.Time
	c.addSide(&x)
	if c.follower != nil {
		c.follower.Changed()
	}
	if c.functions != nil {
		c.functions.changed()
	}
}

// lastAudit handles dropped records at the end of the trace, and reports whether there
// were any. A process that has ended cannot be read. If the buffers also contained
// records of other processes, it is then not known whose records were dropped, and
// nothing counts as lost. Otherwise a loss counts if the kernel reported it, or the end
// of the main thread has no record.
func (c *collector) lastAudit() bool {
	if c.next == nil {
		c.next = c.batch()
	}
	all := c.auditor.Last()
	for _, x := range all {
		c.addAudit(x)
	}
	a := c.auditor
	own := a.Doubt == order.DoubtDropped || a.Doubt == order.DoubtTight && !c.leaderEnded
	if a.Due && own && a.Target.Ended() {
		a.Due = false
		c.addSide(&order.Side{Kind: order.SideAudit, Time: order.Clock(), PID: c.sideband.PID, Since: a.Since, Seen: a.Since})
		return true
	}
	return len(all) > 0
}

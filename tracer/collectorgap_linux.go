package tracer

import (
	"rtrace-bpf/tracer/order"
)

// govern ends a gap when the probes are attached again, and begins a pause when there are
// too many calls.
func (c *collector) govern() error {
	if c.governor == nil {
		return nil
	}
	calls, now := c.arrived, order.Clock()
	c.arrived = 0
	c.governor.look(now) // before take: a pause would hide that probes are missing
	if err := c.governor.take(calls, now); err != nil {
		return err
	}
	if err := c.governor.replace(); err != nil {
		return err
	}
	over, err := c.governor.step(now)
	if err != nil || !over {
		return err
	}
	err = c.governor.resume()
	// The gap includes switching the programs on, because calls are missing until some
	// moment of it.
	c.addGap(c.governor.since, order.Clock())
	return err
}

func (c *collector) addGap(since, until uint64) {
	if c.next == nil {
		c.next = c.batch()
	}
	reason := order.LossPaused
	if c.governor.revived {
		reason = order.LossProbesMoved
	}
	c.addSide(&order.Side{Kind: order.SideGap, Time: until, Seen: since, Reason: reason})
}

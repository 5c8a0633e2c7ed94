package tracer

import (
	"rtrace-bpf/tracer/order"
)

// addLosses adds the kernel's counts since the last call to the order of events, at time.
func (c *collector) addLosses(time uint64) error {
	if c.next == nil {
		c.next = c.batch()
	}
	grown, err := c.losses.Grown()
	if err != nil {
		return err
	}
	work, err := c.losses.Done()
	if err != nil {
		return err
	}
	c.addSide(&order.Side{Kind: order.SideWork, Time: time, Work: work})
	if grown[order.LossSideband] > 0 { // lost notifications of the dynamic loader: an audit finds out what they were about
		c.auditor.Ask(c.lossBefore, order.DoubtOthers)
		grown[order.LossSideband] = 0
	}
	c.lossBefore = time
	grown[order.LossUnfinished] += c.unfinished
	c.unfinished = 0
	grown[order.LossLate] += c.merger.Late
	c.merger.Late = 0
	for reason, n := range grown {
		if n != 0 {
			c.addSide(&order.Side{Kind: order.SideDrops, Time: time, Lost: n, Reason: order.Loss(reason)})
		}
	}
	return nil
}

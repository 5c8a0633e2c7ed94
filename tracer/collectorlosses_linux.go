package tracer

// addLosses takes what the kernel has counted since the last time, as of a time.
func (c *collector) addLosses(time uint64) error {
	if c.next == nil {
		c.next = c.batch()
	}
	grown, err := c.losses.grown()
	if err != nil {
		return err
	}
	work, err := c.losses.done()
	if err != nil {
		return err
	}
	c.addSide(&side{kind: sideWork, time: time, work: work})
	if grown[LossSideband] > 0 { // of the dynamic loader's notifications: only what is mapped can tell what was lost
		c.auditor.ask(c.lossBefore, doubtOthers)
		grown[LossSideband] = 0
	}
	c.lossBefore = time
	grown[LossUnfinished] += c.unfinished
	c.unfinished = 0
	grown[LossLate] += c.merger.late
	c.merger.late = 0
	for reason, n := range grown {
		if n != 0 {
			c.addSide(&side{kind: sideDrops, time: time, lost: n, reason: Loss(reason)})
		}
	}
	return nil
}

package tracer

import (
	"errors"
	"fmt"
)

// pollSideband reads the kernel's records about the process, and sees to it that what
// was dropped is looked after.
func (c *collector) pollSideband(now uint64) {
	c.sides = c.sideband.poll(append(c.sides[:0], c.early...))
	c.early = nil
	for i := range c.sides {
		c.takeSide(&c.sides[i])
	}
	if s := c.sideband.subscription; s != nil && s.ended() {
		c.renewSideband(max(c.lastExec, s.since), c.lastExec < s.since)
		if c.sideband.subscription == s {
			s.leaders = nil // the main thread has ended, others go on
		}
	}
	if c.sideband.dropped {
		c.auditor.ask(c.sideband.since(), c.sideband.doubt())
		c.sideband.narrow()
		c.sideband.settled()
	}
	c.auditor.begin(now)
	if x, ok := c.auditor.end(); ok {
		c.addAudit(x)
	}
}

// takeSide passes on a record of the kernel's, and notifies what depends on it.
func (c *collector) takeSide(x *side) {
	c.remaps++
	x.number = c.remaps
	c.addSide(x)
	switch x.kind {
	case sideExit:
		if c.governor != nil {
			c.governor.threadEnded(int(x.tid), x.time)
		}
		if x.tid == x.pid {
			c.leaderEnded = true
			c.renewSideband(x.time, false)
		}
	case sideExec:
		c.leaderEnded, c.lastExec, c.loading = false, x.time, true
		if c.auditor.spoiled(x.time) {
			c.auditor.ask(c.auditor.since, c.auditor.open)
		}
		c.tell(x)
	case sideMap:
		c.loading = false
		c.tell(x)
	}
}

// tell says that the mappings have changed.
func (c *collector) tell(x *side) {
	if c.follower != nil {
		c.follower.told(x)
	}
	if c.named != nil {
		c.named.changed()
	}
}

// renewSideband looks whether a main thread goes on after the record of its end: when
// it executes a set-user-ID program the kernel takes its events away, which looks the
// same. Then the process is subscribed to once more, and what it has mapped meanwhile
// passes for records of that moment. No call of the new program has been passed on yet.
// If the exec came while the process was subscribed to, its own record may be missing.
func (c *collector) renewSideband(time uint64, unseen bool) {
	again, err := c.sideband.renew()
	if err != nil {
		c.failed = errors.Join(c.failed, fmt.Errorf("watch mappings: %w", err))
		return
	}
	if !again {
		if c.loading && c.sideband.perTask() { // what it became, and mapped, before it ended is not known
			c.auditor.ask(c.lastExec, doubtDropped)
		}
		return
	}
	c.leaderEnded = false
	began := clock()
	all, err := c.auditor.target.mappings()
	if err != nil {
		return // the process has ended
	}
	pid := c.sideband.pid
	if threads := c.auditor.target.threads(); unseen && len(threads) > 0 {
		c.takeSide(&side{kind: sideExec, time: time, pid: pid, tid: pid, name: threads[0].Name})
	}
	for _, m := range all {
		m.seen = began
		c.takeSide(&side{kind: sideMap, time: time + 1, pid: pid, tid: pid, mapping: m})
	}
}

// addAudit has its place in the order after the reading, as addSnapshot.
func (c *collector) addAudit(x side) {
	x.time = clock()
	c.auditor.ended = x.time
	c.addSide(&x)
	if c.follower != nil {
		c.follower.changed()
	}
	if c.named != nil {
		c.named.changed()
	}
}

// lastAudit settles at the end what was dropped, and reports whether there was
// something to be settled. Nothing can be read of a process that has ended. Where other
// processes fill the buffers as well it is not known then whose records were dropped,
// and nothing counts; else the end of the main thread is among them, or the kernel has
// said so.
func (c *collector) lastAudit() bool {
	if c.next == nil {
		c.next = c.batch()
	}
	all := c.auditor.last()
	for _, x := range all {
		c.addAudit(x)
	}
	a := c.auditor
	own := a.doubt == doubtDropped || a.doubt == doubtTight && !c.leaderEnded
	if a.due && own && a.target.ended() {
		a.due = false
		c.addSide(&side{kind: sideAudit, time: clock(), pid: c.sideband.pid, since: a.since, seen: a.since})
		return true
	}
	return len(all) > 0
}

package snapshot

// clock finds the times of snapshots. All times are nanoseconds on the tracer's clock.
type clock struct {
	every  int64
	first  int64 // time of the first record; 0 before it
	last   int64 // of the last record
	due    int64 // of the next snapshot
	events int   // since the last call of idle
}

// begin takes the time of any record.
func (c *clock) begin(now int64) {
	if now > 0 && c.first == 0 {
		c.first, c.due = now, now+c.every
	}
	c.last = max(c.last, now)
}

// event takes the time of an event. It reports whether a snapshot of the events before is
// due, and the time of that snapshot.
func (c *clock) event(now int64) (at int64, due bool) {
	c.events++
	return c.pass(now)
}

// patience is how late an event may come.
const patience = 1_000_000_000

// idle reports the same if no event has come since it was called last.
func (c *clock) idle(now int64) (at int64, due bool) {
	events := c.events
	c.events = 0
	if events > 0 {
		return 0, false
	}
	return c.pass(now - patience)
}

// pass passes the times of snapshots up to now.
func (c *clock) pass(now int64) (at int64, due bool) {
	if c.due == 0 || now < c.due {
		return 0, false
	}
	at = c.due + (now-c.due)/c.every*c.every
	c.due = at + c.every
	return at, true
}

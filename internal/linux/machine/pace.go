package machine

// share is what a part of a reading may take of a processor: one in so many.
const share = 50

// pace holds up what takes long: that it does not take more than its share, and not
// more often than it changes.
type pace struct {
	least int64 // ns between two times, at least
	due   int64 // CLOCK_MONOTONIC in ns
}

// run calls read if it is time for that. spent calls a function and returns for how
// many ns it used a processor: that it had to wait for one is no cost.
func (p *pace) run(now int64, spent func(func()) int64, read func()) {
	if now >= p.due {
		p.due = now + max(p.least, share*spent(read))
	}
}

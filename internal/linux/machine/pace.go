package machine

// share limits the cost of a part of a reading: 1/share of a processor.
const share = 50

// pace delays slow operations so that they take no more than their share of a processor and do
// not run more often than their results change.
type pace struct {
	least int64 // minimum time between two runs, in ns
	due   int64 // earliest time of the next run, CLOCK_MONOTONIC in ns
}

// run calls read if it is due. spent calls a function and returns the processor time that it
// used, in ns: waiting for a processor costs nothing.
func (p *pace) run(now int64, spent func(func()) int64, read func()) {
	if now >= p.due {
		p.due = now + max(p.least, share*spent(read))
	}
}

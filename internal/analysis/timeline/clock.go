package timeline

// Clock converts the times of records to nanoseconds since the first call,
// which never go back.
type Clock struct {
	Day bool // times restart at midnight

	begun bool
	start int64 // the first time in the trace
	first int64 // start, less a day for each midnight
	raw   int64 // the last time in the trace
	last  int64
}

const day = 24 * 3600 * int64(1e9)

// Elapsed returns the time from the first call to a record, in nanoseconds. A
// record without a time gets that of the one before.
func (c *Clock) Elapsed(t int64) int64 {
	switch {
	case t == 0:
		return c.last
	case !c.begun:
		c.begun, c.start, c.first = true, t, t
	case c.Day && c.raw-t > day/2:
		c.first -= day
	}
	c.raw = t
	c.last = max(c.last, t-c.first)
	return c.last
}

// Begun reports whether any record had a time.
func (c *Clock) Begun() bool { return c.begun }

// Last returns the last result of Elapsed.
func (c *Clock) Last() int64 { return c.last }

// Since returns what Elapsed would return, without counting the record.
func (c *Clock) Since(t int64) int64 {
	after := *c
	return after.Elapsed(t)
}

// First returns the time of the first record that had one, on the trace's
// clock.
func (c *Clock) First() int64 { return c.start }

package timeline

// Clock turns the times of records into the nanoseconds since the first call,
// which never go back.
type Clock struct {
	Day bool // times begin again at midnight

	begun bool
	first int64
	raw   int64 // the last time as the trace has it
	last  int64
}

const day = 24 * 3600 * int64(1e9)

// Elapsed returns how long after the first call a record was; one without a time has
// that of the one before.
func (c *Clock) Elapsed(t int64) int64 {
	switch {
	case t == 0:
		return c.last
	case !c.begun:
		c.begun, c.first = true, t
	case c.Day && c.raw-t > day/2:
		c.first -= day
	}
	c.raw = t
	c.last = max(c.last, t-c.first)
	return c.last
}

// Begun says whether there was a time.
func (c *Clock) Begun() bool { return c.begun }

// Last is what Elapsed returned last.
func (c *Clock) Last() int64 { return c.last }

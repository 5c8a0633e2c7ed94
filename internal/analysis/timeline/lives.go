package timeline

// life is what is kept of a live block beside its entry in the table.
type life struct {
	event  uint64 // when it began
	time   int64
	thread uint32 // group
	caller uint32 // group; or, of a vacant place, 1 + the next one
}

// lives keeps one life per live block under numbers that do not change.
type lives struct {
	all    []life
	vacant uint32 // 1 + the first vacant number
}

func (s *lives) at(n uint64) *life { return &s.all[n] }

func (s *lives) add(l life) uint64 {
	if s.vacant == 0 {
		s.all = append(s.all, l)
		return uint64(len(s.all) - 1)
	}
	n := s.vacant - 1
	s.vacant = s.all[n].caller
	s.all[n] = l
	return uint64(n)
}

func (s *lives) remove(n uint64) {
	s.all[n] = life{caller: s.vacant}
	s.vacant = uint32(n) + 1
}

// clock turns the times of records into the nanoseconds since the first call,
// which never go back.
type clock struct {
	day   bool // times begin again at midnight
	begun bool
	first int64
	raw   int64 // the last time as the trace has it
	last  int64
}

const day = 24 * 3600 * int64(1e9)

func (c *clock) elapsed(t int64) int64 {
	switch {
	case t == 0:
		return c.last
	case !c.begun:
		c.begun, c.first = true, t
	case c.day && c.raw-t > day/2:
		c.first -= day
	}
	c.raw = t
	c.last = max(c.last, t-c.first)
	return c.last
}

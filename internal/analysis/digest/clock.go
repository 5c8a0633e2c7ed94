package digest

// clock turns the times of records into the nanoseconds since the first call,
// which never go back.
type clock struct {
	day         bool // times begin again at midnight
	begun       bool
	first, last int64
	raw         int64 // the last time as the trace has it
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

// life is what is kept of a live block beside its entry in the table.
type life struct {
	event  uint64 // when it began
	time   int64
	row    uint32
	thread uint32 // or, of a vacant place, 1 + the next one
	nth    uint32 // allocation of its thread, modulo 2^32
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
	s.vacant = s.all[n].thread
	s.all[n] = l
	return uint64(n)
}

func (s *lives) remove(n uint64) {
	s.all[n] = life{thread: s.vacant}
	s.vacant = uint32(n) + 1
}

// masks are the contexts of calls over an axis, in intervals of equal width.
type masks struct {
	of    []uint32
	shift uint
	limit int
}

func (m *masks) add(x uint64, mask uint32) {
	for x>>m.shift >= uint64(m.limit) {
		m.shift++
		half := m.of[:0]
		for i := 0; i < len(m.of); i += 2 {
			both := m.of[i]
			if i+1 < len(m.of) {
				both |= m.of[i+1]
			}
			half = append(half, both)
		}
		m.of = half
	}
	n := int(x >> m.shift)
	for len(m.of) <= n {
		m.of = append(m.of, 0)
	}
	m.of[n] |= mask
}

// spans returns where a context is entered, from and to, in intervals.
func (m *masks) spans(bit uint32) (spans [][2]uint64) {
	for i, mask := range m.of {
		if mask&bit == 0 {
			continue
		}
		from := uint64(i) << m.shift
		to := from + 1<<m.shift
		if n := len(spans); n > 0 && spans[n-1][1] == from {
			spans[n-1][1] = to
			continue
		}
		spans = append(spans, [2]uint64{from, to})
	}
	return spans
}

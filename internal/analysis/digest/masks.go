package digest

// masks holds the contexts of calls along an axis, in intervals of equal width.
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

// spans returns the intervals in which a context is entered, from and to.
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

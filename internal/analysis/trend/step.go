package trend

// Limits of InStep.
const (
	leastTogether = 10  // blocks of each
	behind        = 2   // blocks by which one may be ahead of the other: operations in progress
	apartShare    = 0.2 // of the slots, at whose ends they may differ
)

// InStep reports whether the blocks of two call sites that pile up began
// together, as blocks of one operation do: at the ends of nearly all slots
// between two times, as many of both had begun, and never many more of one than
// of the other. Both must be the results of At for the same time.
func InStep(h, other *History, from, to int64) bool {
	var a, b, slots, differ int
	for n := min(h.from, other.from); ; n++ {
		if start := int64(n) << h.shift; start < from {
			continue
		}
		if int64(n+1)<<h.shift > to {
			break
		}
		a, b = a+h.began(n), b+other.began(n)
		if a == 0 && b == 0 {
			continue
		}
		slots++
		switch d := a - b; {
		case d > behind || d < -behind:
			return false
		case d != 0:
			differ++
		}
	}
	return min(a, b) >= leastTogether && float64(differ) <= apartShare*float64(slots)
}

// began returns how many blocks that are live now began in slot n.
func (h *History) began(n uint16) int {
	if i := int(n) - int(h.from); i >= 0 && i < len(h.slots) {
		return int(h.slots[i].left)
	}
	return 0
}

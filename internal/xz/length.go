package xz

// lengths is the model of match lengths.
type lengths struct {
	choice, choice2 prob
	low, mid        [maxPosStates][8]prob
	high            [256]prob
}

func (l *lengths) reset() {
	l.choice, l.choice2 = probHalf, probHalf
	for i := range l.low {
		fill(l.low[i][:])
		fill(l.mid[i][:])
	}
	fill(l.high[:])
}

// read reads the length of a match, less minMatch.
func (l *lengths) read(r *rangeDecoder, posState uint32) uint32 {
	switch {
	case r.bit(&l.choice) == 0:
		return r.tree(l.low[posState][:], 3)
	case r.bit(&l.choice2) == 0:
		return 8 + r.tree(l.mid[posState][:], 3)
	}
	return 16 + r.tree(l.high[:], 8)
}

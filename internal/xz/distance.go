package xz

// distances is the model of match distances.
type distances struct {
	slot    [lengthStates][64]prob
	special [firstAlign][64]prob // trees for the low bits of a distance, by slot
	align   [1 << alignBits]prob
}

func (d *distances) reset() {
	for i := range d.slot {
		fill(d.slot[i][:])
	}
	for i := range d.special {
		fill(d.special[i][:])
	}
	fill(d.align[:])
}

// read reads a distance, less one. Its coding depends on the length of the
// match.
func (d *distances) read(r *rangeDecoder, length uint32) uint32 {
	slot := r.tree(d.slot[min(length, lengthStates-1)][:], 6)
	if slot < firstSpecial {
		return slot
	}
	low := int(slot>>1) - 1
	base := (2 | slot&1) << low
	if slot < firstAlign {
		return base + r.reverse(d.special[slot][:], low)
	}
	return base + r.direct(low-alignBits)<<alignBits + r.reverse(d.align[:], alignBits)
}

package trend

import "rtrace-bpf/internal/live"

// rates are the rates at which the blocks that are left in some slots were
// allocated.
type rates struct {
	shift         uint8 // width of the slots
	from, to      int   // numbers of the first and the last slot
	blocks, bytes Rate
}

// ratesOf returns the rates in the slots first to last of the slots, none of which
// can get further blocks. Unless they have changed, they are those of the last time:
// a view that is drawn once a second computes them once for each slot.
func (h *History) ratesOf(first, last int) *rates {
	key := rates{shift: h.shift, from: int(h.from) + first, to: int(h.from) + last}
	if k := h.rates; k != nil && k.shift == key.shift && k.from == key.from && k.to == key.to {
		return k
	}
	var times, blocks, bytes [maxSlots]float64
	var sum live.Amount
	n := 0
	for i := first; i <= last; i++ {
		sum.Add(live.Amount{Blocks: uint64(h.slots[i].left), Bytes: h.slots[i].bytes})
		times[n], blocks[n], bytes[n] = float64(h.end(i))/1e9, float64(sum.Blocks), float64(sum.Bytes)
		n++
	}
	k := new(rates)
	*k = key
	k.blocks.PerSecond, k.blocks.Error = slope(times[:n], blocks[:n])
	k.bytes.PerSecond, k.bytes.Error = slope(times[:n], bytes[:n])
	if h.of != nil {
		h.of.rates = k
	}
	return k
}

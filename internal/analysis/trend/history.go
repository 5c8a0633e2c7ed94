// Package trend distinguishes leaks from memory that comes and goes. A [History] keeps,
// in bounded memory, how many blocks of a call site were live over time and when
// those that are live now were allocated. [Judge] derives from it whether the
// site grows, since when and how fast, or has levelled off.
//
// Times are nanoseconds since the start of the recording. Everything is computed
// from the times of the calls, so it does not matter when a History is read.
package trend

import "rtrace-bpf/internal/live"

const (
	// maxSlots bounds the slots of a History; at least half are in use as soon as
	// 32 ms have been recorded. It is even.
	maxSlots = 32
	// firstShift is the width of the first slots, as a power of two: 1 ms.
	firstShift = 20
)

// History is the blocks of a call site over time, in slots of equal width. When
// there are too many slots, neighbours are joined and the width doubles. The
// slots of all Histories have the same borders, so that they can be added. The
// zero History is empty.
type History struct {
	live  live.Amount // now
	shift uint8       // width of a slot, as a power of two
	from  uint16      // number of the first of the slots
	first int64       // when the first block began
	slots []slot

	// rates are the last ones that were computed, or nil if the slots before the
	// last one have changed since. of is the History that a copy was made of, and
	// keeps the rates of the copy.
	rates *rates
	of    *History
}

// slot is an interval of time.
type slot struct {
	left   uint32 // blocks allocated in it that are live now
	level  uint32 // blocks that were live at its end
	bytes  uint64 // of left
	amount uint64 // bytes of level
}

// shiftAt returns the width of the slots at a time, as a power of two.
func shiftAt(now int64) uint8 {
	shift := uint8(firstShift)
	for now>>shift >= maxSlots {
		shift++
	}
	return shift
}

// Began counts a block that begins to live.
func (h *History) Began(now int64, size uint64) {
	s := h.advance(now)
	h.live.AddBlock(size)
	s.left++
	s.bytes += size
	s.level, s.amount = uint32(h.live.Blocks), h.live.Bytes
}

// Ended counts a live block that was freed, or became unknown. It had begun at
// the given time.
func (h *History) Ended(now, began int64, size uint64) {
	s := h.advance(now)
	h.live.SubBlock(size)
	s.level, s.amount = uint32(h.live.Blocks), h.live.Bytes
	if i := int(began>>h.shift) - int(h.from); i >= 0 && i < len(h.slots) {
		s = &h.slots[i]
		s.left--
		s.bytes -= size
		if i < len(h.slots)-1 {
			h.rates = nil
		}
	}
}

// advance returns the slot at a time, which is not before the last one.
func (h *History) advance(now int64) *slot {
	now = max(0, now)
	if h.slots == nil {
		h.shift = shiftAt(now)
		h.from = uint16(now >> h.shift)
		h.first = now
	}
	for now>>h.shift >= maxSlots {
		h.join()
	}
	n := int(now>>h.shift) - int(h.from)
	if n >= cap(h.slots) {
		h.grow(n + 1)
	}
	for len(h.slots) <= n {
		h.slots = append(h.slots, slot{level: uint32(h.live.Blocks), amount: h.live.Bytes})
	}
	return &h.slots[len(h.slots)-1]
}

// grow makes room for n slots, without the spare room that append makes.
func (h *History) grow(n int) {
	room := 4
	for room < n {
		room *= 2
	}
	slots := make([]slot, len(h.slots), min(room, maxSlots))
	copy(slots, h.slots)
	h.slots = slots
}

// join joins pairs of slots.
func (h *History) join() {
	first := h.from >> 1
	out := h.slots[:0]
	for i, s := range h.slots {
		if n := (int(h.from)+i)>>1 - int(first); n < len(out) {
			at := &out[n]
			at.left += s.left
			at.bytes += s.bytes
			at.level, at.amount = s.level, s.amount
		} else {
			out = append(out, s)
		}
	}
	h.slots, h.from = out, first
	h.shift++
}

// At returns a copy as it is at a time, which is not before the last call.
func (h *History) At(now int64) *History { return h.CopyAt(now, new(History)) }

// CopyAt is the same in the memory of own, whose former contents are not used any
// more.
func (h *History) CopyAt(now int64, own *History) *History {
	slots := own.slots[:0]
	if cap(slots) < maxSlots {
		slots = make([]slot, 0, maxSlots)
	}
	*own = *h
	own.slots, own.of = append(slots, h.slots...), h
	own.advance(now)
	return own
}

// Add adds the blocks of another History. Both must be the results of At for the
// same time.
func (h *History) Add(other *History) {
	if other.from < h.from {
		earlier := append(make([]slot, 0, maxSlots), other.slots[:h.from-other.from]...)
		for i := range earlier {
			earlier[i] = slot{}
		}
		h.slots, h.from = append(earlier, h.slots...), other.from
	}
	for i := range other.slots {
		to, s := &h.slots[i+int(other.from-h.from)], &other.slots[i]
		to.left += s.left
		to.bytes += s.bytes
		to.level += s.level
		to.amount += s.amount
	}
	h.live.Add(other.live)
	h.first = min(h.first, other.first)
	h.rates, h.of = nil, nil
}

// since returns the number of live blocks that began after a time, apart from
// those of the slot that contains it.
func (h *History) since(t int64) (n uint64) {
	for i := range h.slots {
		if h.start(i) >= t {
			n += uint64(h.slots[i].left)
		}
	}
	return n
}

// Point is the amount that was live at a time.
type Point struct {
	Time int64
	live.Amount
}

// Points returns the amounts at the ends of the slots, from the first block on.
// The last slot ends at the time of the last call.
func (h *History) Points(now int64) []Point {
	out := make([]Point, len(h.slots))
	for i, s := range h.slots {
		out[i] = Point{Time: min(now, h.end(i)), Amount: live.Amount{Blocks: uint64(s.level), Bytes: s.amount}}
	}
	return out
}

// start returns the start of slot i of the slots, end its end.
func (h *History) start(i int) int64 { return (int64(h.from) + int64(i)) << h.shift }
func (h *History) end(i int) int64   { return h.start(i + 1) }

package trend

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/live"
)

// Figures is what Judge needs to know in addition to a History.
type Figures struct {
	Now   int64 // time of the last call of the trace
	Since int64 // time of the last gap in the recording, or 0; nothing before it counts
	// Lifetimes counts the freed blocks by lifetime: step 0 is 0 ns, step n the
	// lifetimes from 1<<(n-1) ns on.
	Lifetimes [65]uint64
	Allocated uint64 // blocks that were allocated
	Freed     uint64 // blocks that were freed
	// Before holds the frees of blocks from before the recording, of the same
	// type of resource, each as a block that began. It is the result of At for
	// Now, or nil.
	Before *History
}

// Kind is what a call site does.
type Kind uint8

// The kinds of call sites.
const (
	Unclear  Kind = iota // too few blocks, or too short a time
	Growing              // blocks pile up that are not freed: a suspect
	Balanced             // the same, but nearly as many blocks from before the recording were freed
	Level                // the amount has not changed much for a while
	Varying              // blocks come and go
	Empty                // no blocks are live
)

// Rate is a change per second.
type Rate struct {
	PerSecond float64
	Error     float64 // half the width of the confidence interval of 95 %
}

// Trend is what the blocks of a call site do over time.
type Trend struct {
	Kind Kind
	Live live.Amount // now
	// Allocated and Freed are the blocks since the start of the recording.
	Allocated, Freed uint64
	Blocks           Rate // Growing: of the blocks that pile up
	Bytes            Rate
	// Since is when the growth began or the level was reached. Start reports
	// that this was the start of the recording.
	Since int64
	Start bool
	// Age separates the blocks that pile up from others of the site: blocks that
	// are older are not freed any more, apart from FreedOld. Old of them are live.
	Age      int64
	Old      uint64
	FreedOld uint64
	// Low and High are the least and most bytes that were live at a time in the
	// second half of the recording.
	Low, High uint64
	// Restarts is how often the amount grew again after it had fallen by half.
	Restarts int
}

// Compare orders trends: those that grow first, the fastest in bytes before the
// others, and then those with more bytes live. It returns a negative number if t
// comes before u.
func (t *Trend) Compare(u *Trend) int {
	if a, b := t.Kind == Growing, u.Kind == Growing; a != b {
		if a {
			return -1
		}
		return 1
	}
	if t.Kind == Growing {
		if c := cmp.Or(cmp.Compare(u.Bytes.PerSecond, t.Bytes.PerSecond), cmp.Compare(u.Blocks.PerSecond, t.Blocks.PerSecond)); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(u.Live.Bytes, t.Live.Bytes), cmp.Compare(u.Live.Blocks, t.Live.Blocks))
}

// LeastBlocks is how many live blocks a call site that grows has at least.
const LeastBlocks = 6

const (
	leastSlots = 12   // of the time
	freedShare = 0.1  // of the blocks that pile up, which may be freed
	windows    = 5    // of the time of growth, each of which must have its part
	leastSpan  = 0.25 // time of growth, as a share of the time of recording
	lateRate   = 0.25 // rate in the last window, as a share of that of all
)

// Judge returns the trend of a call site. h must be the result of At for f.Now.
func Judge(h *History, f *Figures) Trend {
	t := judge(h, f)
	if t.Since > 0 {
		t.Since = max(t.Since, h.first) // it is the start of a slot
	}
	return t
}

func judge(h *History, f *Figures) Trend {
	t := Trend{Live: h.live, Allocated: f.Allocated, Freed: f.Freed}
	t.ranges(h, f)
	if h.live.Blocks == 0 {
		t.Kind = Empty
		return t
	}
	if t.grows(h, f) {
		if t.Kind = Growing; f.balances(h) {
			t.Kind = Balanced
		}
		return t
	}
	t.levels(h, f)
	return t
}

// balances reports whether the frees of blocks from before the recording may
// balance the growth: in the last two fifths of the time there are at least half
// as many of them, and not much fewer than in the first two fifths.
func (f *Figures) balances(h *History) bool {
	if f.Before == nil {
		return false
	}
	fifth := f.Now / 5
	recent := f.Before.since(f.Now - 2*fifth)
	early := f.Before.since(0) - f.Before.since(2*fifth)
	return recent > 0 && 2*recent >= h.since(f.Now-2*fifth) && 2*recent >= early
}

// ranges sets Low, High and Restarts.
func (t *Trend) ranges(h *History, f *Figures) {
	top, fallen := uint64(0), false
	for i := range h.slots {
		v := h.slots[i].amount
		if h.end(i) > f.Now/2 {
			if t.Low == 0 && t.High == 0 || v < t.Low {
				t.Low = v
			}
			t.High = max(t.High, v)
		}
		switch {
		case !fallen && v < top/2:
			fallen, top = true, v
		case fallen && v < top:
			top = v
		case fallen && v > 2*top:
			fallen, top = false, v
			t.Restarts++
		case !fallen:
			top = max(top, v)
		}
	}
}

// grows reports whether blocks pile up. These are blocks that are older than an
// age at which hardly any are freed, and that were allocated all the time.
func (t *Trend) grows(h *History, f *Figures) bool {
	if f.Now>>h.shift < leastSlots {
		return false
	}
	for step := range uint8(63) {
		age := int64(0)
		switch {
		case step > firstShift:
			age = int64(1) << (step - 1)
		case step > 0:
			continue // many traces have times in milliseconds
		}
		if age > f.Now/2 {
			return false
		}
		t.Age, t.Old, t.FreedOld = age, 0, 0
		for _, n := range f.Lifetimes[step:] {
			t.FreedOld += n
		}
		first, last := -1, -1 // slots of the blocks that pile up
		for i := range h.slots {
			if h.start(i) < f.Since || h.end(i) > f.Now-age {
				continue
			}
			if h.slots[i].left > 0 && first < 0 {
				first = i
			}
			last = i
			t.Old += uint64(h.slots[i].left)
		}
		if t.Old < LeastBlocks {
			return false // and fewer are older
		}
		if float64(t.FreedOld) > freedShare*float64(t.Old) {
			continue
		}
		return t.steady(h, f, first, last)
	}
	return false
}

// steady reports whether the blocks that pile up were allocated all the time,
// and sets the rates.
func (t *Trend) steady(h *History, f *Figures, first, last int) bool {
	n := last - first + 1
	if float64(h.end(last)-h.start(first)) < leastSpan*float64(f.Now) || n < windows {
		return false
	}
	var parts [windows]float64
	var widths [windows]int // in slots
	for i := first; i <= last; i++ {
		k := (i - first) * windows / n
		parts[k] += float64(h.slots[i].left) * float64(windows) / float64(n)
		widths[k]++
	}
	mean, filled := 0.0, 0
	for k := range parts {
		mean += parts[k] / windows
		if parts[k] > 0 {
			filled++
		}
		parts[k] *= float64(n) / windows / float64(widths[k])
	}
	if filled < windows-1 || parts[windows-1] < lateRate*mean {
		return false
	}
	r := h.ratesOf(first, last)
	t.Blocks, t.Bytes = r.blocks, r.bytes
	t.Since, t.Start = h.start(first), h.start(first) <= f.Now/20
	return true
}

// levels decides between the kinds that do not grow.
func (t *Trend) levels(h *History, f *Figures) {
	if f.Now>>h.shift < leastSlots {
		return
	}
	t.Kind = Varying
	low, high := h.live.Bytes, h.live.Bytes
	for i, s := range slices.Backward(h.slots) {
		low, high = min(low, s.amount), max(high, s.amount)
		if float64(high-low) > 0.1*float64(high) {
			break
		}
		t.Since = h.start(i)
	}
	if f.Now-t.Since >= f.Now/4 {
		t.Kind = Level
		t.Start = t.Since <= f.Now/20
	}
}

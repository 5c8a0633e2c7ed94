package topview

import (
	"maps"
	"slices"
	"time"

	"rtrace-bpf/internal/live"
)

// points is how many refreshes a series holds: a minute of them.
const points = 60

// series is the live bytes of an item at the last refreshes.
type series struct {
	live      []uint64    // at most points, the last one is the newest
	allocated live.Amount // at the newest point
	since     live.Amount // of allocated, since the refresh before
	seen      int         // number of the newest refresh
	late      bool        // it had blocks before the first point, which nobody has counted
}

// history holds the series of items, and the times of refreshes.
type history struct {
	times  []time.Duration // of the last refreshes, at most points, the last one is the newest
	now    int             // number of the newest refresh
	sites  []series        // by number
	others map[key]*series // of threads and sizes
}

// begin begins a refresh.
func (h *history) begin(at time.Duration) {
	h.now++
	h.times = append(h.times, at)
	if len(h.times) > points {
		h.times = h.times[1:]
	}
}

// of returns the series of an item, nil if it has none.
func (h *history) of(k key) *series {
	if k.kind != BySite {
		return h.others[k]
	}
	if k.n < int64(len(h.sites)) {
		return &h.sites[k.n]
	}
	return nil
}

// make returns the series of an item, which is a new one if it has none.
func (h *history) make(k key) *series {
	if k.kind == BySite {
		for int64(len(h.sites)) <= k.n {
			h.sites = append(h.sites, series{})
		}
		return &h.sites[k.n]
	}
	s := h.others[k]
	if s == nil {
		if h.others == nil {
			h.others = make(map[key]*series)
		}
		s = new(series)
		h.others[k] = s
	}
	return s
}

// add adds the figures of an item to the current refresh.
func (h *history) add(x *item) *series {
	s := h.make(x.key)
	s.since = x.allocated
	if s.seen > 0 {
		s.since.Sub(s.allocated)
	}
	s.allocated, s.seen = x.allocated, h.now
	s.live = append(s.live, x.live.Bytes)
	if len(s.live) > points {
		s.live = s.live[1:]
	}
	return s
}

// addLate does the same with an item that nobody has followed so far.
func (h *history) addLate(x *item) {
	s := h.add(x)
	s.since, s.late = live.Amount{}, true
}

// drop forgets items of some kinds, but not call sites.
func (h *history) drop(kinds ...By) {
	maps.DeleteFunc(h.others, func(k key, _ *series) bool { return slices.Contains(kinds, k.kind) })
}

// allocated returns what an item has allocated since the refresh before the last one.
func (h *history) allocated(k key) live.Amount {
	if s := h.of(k); s != nil && s.seen == h.now {
		return s.since
	}
	return live.Amount{}
}

// rates returns the bytes and blocks that all call sites allocate per second.
func (h *history) rates() (bytes, blocks float64) {
	interval := h.interval().Seconds()
	if interval <= 0 {
		return 0, 0
	}
	var sum live.Amount
	for i := range h.sites {
		sum.Add(h.allocated(keyOf(i)))
	}
	return float64(sum.Bytes) / interval, float64(sum.Blocks) / interval
}

// interval returns the time since the refresh before the last one.
func (h *history) interval() time.Duration {
	if n := len(h.times); n > 1 {
		return h.times[n-1] - h.times[n-2]
	}
	return h.last()
}

// last returns the time of the last refresh.
func (h *history) last() time.Duration {
	if len(h.times) == 0 {
		return 0
	}
	return h.times[len(h.times)-1]
}

// window returns the time over which growth is measured: the last minute, or less.
func (h *history) window() time.Duration {
	if len(h.times) < 2 {
		return h.last()
	}
	return h.last() - h.times[0]
}

// values returns the live bytes of an item at all refreshes of the window. Before it
// occurred, it had none.
func (h *history) values(k key) []uint64 {
	all := make([]uint64, len(h.times))
	s := h.of(k)
	if s == nil || len(s.live) == 0 {
		return all
	}
	from := max(0, len(all)-len(s.live))
	copy(all[from:], s.live[max(0, len(s.live)-len(all)):])
	for i := range from {
		if s.late {
			all[i] = all[from]
		}
	}
	return all
}

// bars returns the live bytes of a row at the last refreshes, the last one is the newest.
func (h *history) bars(r *Row) []uint64 {
	sum := make([]uint64, len(h.times))
	for k := range r.keys() {
		for i, v := range h.values(k) {
			sum[i] += v
		}
	}
	return sum
}

// growth returns the change of live bytes of an item per second over the window.
func (h *history) growth(k key) float64 {
	w, s := h.window().Seconds(), h.of(k)
	if w <= 0 || s == nil || len(s.live) == 0 {
		return 0
	}
	first := uint64(0) // nothing was live when tracing began
	if len(s.live) == len(h.times) && len(h.times) > 1 || s.late {
		first = s.live[0]
	}
	return float64(int64(s.live[len(s.live)-1]-first)) / w
}

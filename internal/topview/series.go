package topview

import (
	"maps"
	"slices"
	"time"

	"rtrace-bpf/internal/live"
)

// key identifies an item: something whose figures are followed from snapshot to snapshot.
type key struct {
	kind By    // BySite, ByThread or BySize
	n    int64 // number of the site, thread id, or number of the smallest size
	pid  int32 // of a thread
}

// item is the figures of a call site, of a thread or of a range of sizes.
type item struct {
	key
	site            int // number of a site with kind BySite
	live, allocated live.Amount
	freed, unknown  live.Amount // of sites
	oldest          int64       // when its oldest live block was allocated; -1 if there is none or it is not known
	from, to        uint64      // sizes
	others          bool        // the sum of the remaining threads
}

// points is how many refreshes a series holds: a minute of them.
const points = 60

// series is the live bytes of an item at the last refreshes.
type series struct {
	live      []uint64    // at most points, the last one is the newest
	allocated live.Amount // at the newest point
	seen      int         // number of the newest refresh
	late      bool        // it had blocks before the first point, which nobody has counted
}

// history holds the series of items, and the times of refreshes.
type history struct {
	times []time.Duration // of the last refreshes, at most points, the last one is the newest
	now   int             // number of the newest refresh
	of    map[key]*series
	// allocated is what was allocated since the refresh before the last one.
	allocated map[key]live.Amount
}

// begin begins a refresh.
func (h *history) begin(at time.Duration) {
	h.now++
	h.times = append(h.times, at)
	if len(h.times) > points {
		h.times = h.times[1:]
	}
	if h.of == nil {
		h.of = make(map[key]*series)
	}
}

// add adds the figures of an item to the current refresh. It returns what was allocated
// since the last one.
func (h *history) add(x *item) (allocated live.Amount) {
	s := h.of[x.key]
	if s == nil {
		s = new(series)
		h.of[x.key] = s
	}
	allocated = x.allocated
	if s.seen > 0 {
		allocated.Sub(s.allocated)
	}
	s.allocated, s.seen = x.allocated, h.now
	s.live = append(s.live, x.live.Bytes)
	if len(s.live) > points {
		s.live = s.live[1:]
	}
	return allocated
}

// drop forgets items of some kinds.
func (h *history) drop(kinds ...By) {
	maps.DeleteFunc(h.of, func(k key, _ *series) bool { return slices.Contains(kinds, k.kind) })
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
	s := h.of[k]
	if s == nil {
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

// growth returns the change of live bytes of an item per second over the window.
func (h *history) growth(k key) float64 {
	w, s := h.window().Seconds(), h.of[k]
	if w <= 0 || s == nil || len(s.live) == 0 {
		return 0
	}
	first := uint64(0) // nothing was live when tracing began
	if len(s.live) == len(h.times) && len(h.times) > 1 || s.late {
		first = s.live[0]
	}
	return float64(int64(s.live[len(s.live)-1]-first)) / w
}

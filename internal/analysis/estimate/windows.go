package estimate

import "rtrace-bpf/trace"

// Windows follows the windows of a trace. The zero value is ready to use: it has none, so
// each call stands for itself. Memory grows with the windows, by some bytes each.
type Windows struct {
	any    bool // the trace has windows
	weight uint64
	begun  int64 // when the first window began
	last   int64 // time of the last record
	since  int64 // when the weight began
	until  int64 // the planned end of the window

	list    []stretch
	sampled int         // windows that stand for more than themselves
	squares float64     // sum of the squares of their stretches
	opened  int64       // when the last window began
	now     processor   // of the window that is open, or was last
	heavy   processor   // the same with its weights
	scaled  processor   // of the windows that stand for more than themselves, with their weights
	all     processor   // of the whole time, without the other windows
	changes changes     // of own time and of that for probes, from window to window
	settled bool        // the last window has ended, and the sums include it
	read    trace.Cost  // what the last record has: Used and Added
	open    int64       // ns, all windows together
	covered int64       // ns, their stretches together
	doubt   float64     // how far the cost of a hit may be from the truth, as a share of it
	cost    *trace.Cost // nil if the trace has none yet
}

// stretch is the time that a window stands for.
type stretch struct {
	from   int64     // when the window opened
	to     int64     // when it closed; 0 before
	length float64   // ns
	number int       // among the windows that stand for more than themselves, from 1; 0 for others
	scale  float64   // planned length, as a share of the actual one
	spent  processor // while the window was open
}

// processor is processor time of the process, in ns.
type processor struct {
	used  float64 // altogether
	added float64 // of it, by hits of probes
}

func (p *processor) add(o processor, weight float64) {
	p.used, p.added = p.used+weight*o.used, p.added+weight*o.added
}

// leastOwn is the share of the processor time of a window that a process uses for itself, at
// least.
const leastOwn = 0.01

// ratio returns how many times as much time went into probes as the process used for itself,
// if a hit costs doubt more than it was measured, as a share of it.
func (p *processor) ratio(doubt float64) float64 {
	if p.used <= 0 {
		return 0
	}
	own := max(leastOwn*p.used, p.used-(1+doubt)*p.added)
	return (p.used - own) / own
}

// Observe processes a record that is no call.
func (w *Windows) Observe(r *trace.Record) {
	switch r.Kind {
	case trace.KindWindow:
		w.last = r.Time
		w.begin(r)
	case trace.KindCost:
		w.last = r.Time
		c := r.Cost
		w.cost = &c
		if w.any {
			w.pass(c.Used, c.Added)
			w.end(r.Time)
		}
	}
}

// pass adds the processor time since the last record.
func (w *Windows) pass(used, added int64) {
	passed := processor{float64(max(0, used-w.read.Used)), float64(max(0, added-w.read.Added))}
	w.read.Used, w.read.Added = used, added
	w.all.add(passed, 1)
	if w.weight > 0 {
		w.now.add(passed, 1)
		w.heavy.add(passed, float64(w.weight))
	}
}

// begin begins, changes or ends a window.
func (w *Windows) begin(r *trace.Record) {
	x := &r.Window
	w.pass(x.Used, x.Added)
	early := w.weight > 0 && r.Time < w.until && x.Stretch == 0 // a coin closed the window, or changed its weight
	if early {
		w.sample()
	}
	if x.Weight > 0 && x.Stretch == 0 && len(w.list) > 0 {
		w.open += max(0, r.Time-w.since)
		w.weight, w.since = x.Weight, r.Time
		return
	}
	w.end(r.Time)
	if !w.any {
		w.any, w.begun, w.all = true, r.Time, processor{}
	}
	if x.Weight == 0 {
		return
	}
	w.weight, w.since, w.opened, w.until = x.Weight, r.Time, r.Time, x.Until
	w.list = append(w.list, stretch{from: r.Time, length: float64(max(1, x.Stretch)), scale: 1})
	w.covered, w.doubt = w.covered+max(0, x.Stretch), float64(x.Doubt)/1e6
	w.now, w.heavy, w.settled = processor{}, processor{}, false
	if x.Weight > 1 {
		w.sample()
	}
}

// sample counts the last window as one that stands for more than itself.
func (w *Windows) sample() {
	last := &w.list[len(w.list)-1]
	if last.number > 0 {
		return
	}
	w.sampled++
	last.number = w.sampled
	w.squares += last.length * last.length
}

// end ends the last window.
func (w *Windows) end(time int64) {
	if w.weight > 0 {
		w.open += max(0, time-w.since)
	}
	w.weight = 0
	if w.settled || len(w.list) == 0 {
		return
	}
	w.settled = true
	last := &w.list[len(w.list)-1]
	last.spent, last.to = w.now, time
	if last.number == 0 { // it stands for itself alone
		w.all.add(w.now, -1)
		return
	}
	if time > w.until && w.until > w.opened {
		last.scale = float64(w.until-w.opened) / float64(time-w.opened)
	}
	w.scaled.add(w.heavy, last.scale)
	per := last.scale / last.length
	w.changes.step(last.number, value{per * (w.heavy.used - w.heavy.added), per * w.heavy.added})
}

// Length returns the time from the first window to the last record, in ns, which all sums are for.
func (w *Windows) Length() int64 { return w.last - w.begun }

// Any reports whether the trace has windows: its sums are estimates.
func (w *Windows) Any() bool { return w.any }

// Weight returns how many calls a call after the records that were observed stands for.
func (w *Windows) Weight() uint64 {
	if !w.any {
		return 1
	}
	return w.weight
}

// Summary describes the windows of a trace.
type Summary struct {
	Windows int   `json:"windows"`
	Open    int64 `json:"open"`    // ns, all windows together
	Covered int64 `json:"covered"` // ns that they stand for
}

// Summary returns what is known of the windows so far.
func (w *Windows) Summary() Summary {
	s := Summary{len(w.list), w.open, w.covered}
	if w.cost != nil && w.cost.Covered > 0 {
		s.Covered = w.cost.Covered
	}
	return s
}

// Cost returns what the recording cost the process; nil if that is not known.
func (w *Windows) Cost() *trace.Cost { return w.cost }

// leastCovered is the share of the recording that windows stand for, at least, if their sums
// are estimates for all of it.
const leastCovered = 0.9

// partial reports whether windows stand for a part of the recording only, as if there was no
// time or budget for more of them. If all windows stand for themselves, a time for which another
// one was planned had none.
func (w *Windows) partial() bool {
	covered := w.Summary().Covered
	if w.sampled == 0 {
		covered = min(covered, w.open)
	}
	return float64(covered) < leastCovered*float64(w.last-w.begun)
}

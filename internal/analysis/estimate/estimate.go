// Package estimate estimates sums over all calls from calls that were recorded in windows,
// with the error of each sum.
//
// A call in a window stands for as many calls as the window's weight says, so a sum of
// weights is unbiased ([trace.Window]). Its variance is estimated from the differences of
// successive windows, so a slow change of the process does not count as error. It is at
// least that of calls which come at random.
package estimate

import (
	"math"

	"rtrace-bpf/trace"
)

// Windows follows the windows of a trace. The zero value is ready to use: it has none, so
// each call stands for itself.
type Windows struct {
	weight  uint64
	until   int64
	stretch float64 // ns, of the open window, or of the last one

	all      int     // windows
	sampled  int     // of these, that stand for more than themselves; the number of the last one
	squares  float64 // sum of the squares of their stretches
	open     int64   // ns, all windows together
	covered  int64   // ns, their stretches together
	partial  bool    // the last window is one of sampled
	cost     trace.Cost
	measured bool // cost is there
}

// Observe processes a record that is no call.
func (w *Windows) Observe(r *trace.Record) {
	switch r.Kind {
	case trace.KindWindow:
		w.begin(r)
	case trace.KindCost:
		w.cost, w.measured = r.Cost, true
	}
}

func (w *Windows) begin(r *trace.Record) {
	x := &r.Window
	if w.until > r.Time {
		w.open -= w.until - r.Time
	}
	w.weight, w.until = x.Weight, x.Until
	w.open += max(0, x.Until-r.Time)
	if x.Stretch == 0 && w.all > 0 {
		if !w.partial && x.Weight > 1 {
			w.sample()
		}
		return
	}
	w.all++
	w.stretch = float64(max(1, x.Stretch))
	w.covered += max(0, x.Stretch)
	w.partial = false
	if x.Weight > 1 {
		w.sample()
	}
}

// sample counts the window as one that stands for more than itself.
func (w *Windows) sample() {
	w.partial = true
	w.sampled++
	w.squares += w.stretch * w.stretch
}

// Any reports whether the trace has windows: its sums are estimates.
func (w *Windows) Any() bool { return w.all > 0 }

// Weight returns how many calls a call at time t, after the records that were observed,
// stands for.
func (w *Windows) Weight(t int64) uint64 {
	switch {
	case w.all == 0:
		return 1
	case t > w.until:
		return 0
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
	s := Summary{w.all, w.open, w.covered}
	if w.measured && w.cost.Covered > 0 {
		s.Covered = w.cost.Covered
	}
	return s
}

// Sum is a sum over calls. The zero value is an empty sum. All methods of a Sum take the
// Windows of the same trace.
type Sum struct {
	exact  float64 // of windows with weight 1
	total  float64 // of the others
	floor  float64 // variance if calls come at random
	within float64 // of the window in which it was last added to
	at     int     // the number of that window
	rate   float64 // per ns, of the window before at that it was added to
	before int     // the number of that window
	square float64 // sum of the squared differences of successive rates
	length float64 // ns, of the stretch of the window at
}

// Add adds x for a call at time t.
func (s *Sum) Add(w *Windows, t int64, x float64) {
	weight := float64(w.Weight(t))
	if weight == 0 {
		return
	}
	if !w.partial {
		s.exact += weight * x
		return
	}
	if s.at != w.sampled {
		s.turn()
		s.at, s.length = w.sampled, w.stretch
	}
	s.within += weight * x
	s.total += weight * x
	s.floor += weight * (weight - 1) * x * x
}

// turn completes the window that was last added to.
func (s *Sum) turn() {
	if s.at == 0 {
		return
	}
	rate := s.within / s.length
	s.square += s.step(rate)
	s.rate, s.before, s.within = rate, s.at, 0
}

// step returns what the window at, with a rate, adds to the squared differences.
func (s *Sum) step(rate float64) float64 {
	switch {
	case s.before == s.at-1 && s.before > 0:
		return (rate - s.rate) * (rate - s.rate)
	case s.before > 0:
		return s.rate*s.rate + rate*rate // in windows between them it was 0
	case s.at > 1:
		return rate * rate
	}
	return 0
}

// Estimate is a sum with its error.
type Estimate struct {
	Value float64 `json:"value"`
	Error float64 `json:"error"` // standard error; 0 if the value is exact
	Low   float64 `json:"low"`   // the interval that contains the true value with 95 %
	High  float64 `json:"high"`
}

// Estimate returns the sum and its error.
func (s *Sum) Estimate(w *Windows) Estimate {
	e := Estimate{Value: s.exact + s.total}
	variance := s.variance(w)
	if variance == 0 {
		e.Low, e.High = e.Value, e.Value
		return e
	}
	e.Error = math.Sqrt(variance)
	wide := variance
	if w.sampled > 1 {
		t := student(max(1, 2*float64(w.sampled-1)/3)) / normal
		wide *= t * t
	}
	low, high := interval(s.total, wide)
	e.Low, e.High = s.exact+low, s.exact+high
	return e
}

// variance returns the variance of the sum.
func (s *Sum) variance(w *Windows) float64 {
	if s.at == 0 {
		return 0
	}
	if w.sampled < 2 {
		return max(s.floor, s.total*s.total) // one window shows nothing of the others
	}
	rate := s.within / s.length
	square := s.square + s.step(rate)
	if s.at < w.sampled {
		square += rate * rate
	}
	return max(s.floor, square/(2*float64(w.sampled-1))*w.squares)
}

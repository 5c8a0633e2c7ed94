// Package estimate estimates sums over all calls from calls that were recorded in windows,
// with the error of each sum.
//
// A call in a window stands for as many calls as the window has weight, so a sum of
// weights is unbiased ([trace.Window]). Its variance is estimated from the differences of
// successive windows, so a slow change of the process does not count as error. It is at
// least that of calls which come at random.
package estimate

import (
	"math"

	"rtrace-bpf/trace"
)

// Windows follows the windows of a trace. The zero value is ready to use: it has none, so
// each call stands for itself. Memory grows with the windows, by some bytes each.
type Windows struct {
	any     bool // the trace has windows
	weight  uint64
	since   int64 // when the weight began
	until   int64 // the planned end of the window
	list    []stretch
	sampled int     // windows that stand for more than themselves
	squares float64 // sum of the squares of their stretches
	open    int64   // ns, all windows together
	covered int64   // ns, their stretches together

	cost     trace.Cost
	measured bool // cost is there
}

// stretch is the time that a window stands for.
type stretch struct {
	length float64 // ns
	number int     // among the windows that stand for more than themselves, from 1; 0 for others
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
	if w.weight > 0 {
		w.open += max(0, r.Time-w.since)
	}
	w.any = true
	early := w.weight > 0 && r.Time < w.until // a coin closed the window, or changed its weight
	w.weight, w.since = x.Weight, r.Time
	if x.Weight > 0 {
		w.until = x.Until
	}
	switch {
	case len(w.list) > 0 && x.Stretch == 0:
		if early {
			w.sample()
		}
	case x.Weight > 0:
		w.list = append(w.list, stretch{length: float64(max(1, x.Stretch))})
		w.covered += max(0, x.Stretch)
		if x.Weight > 1 {
			w.sample()
		}
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
	if w.measured && w.cost.Covered > 0 {
		s.Covered = w.cost.Covered
	}
	return s
}

// Cost returns what the recording cost the process, and whether that is known.
func (w *Windows) Cost() (*trace.Cost, bool) { return &w.cost, w.measured }

// Sum is a sum over calls. The zero value is an empty sum. All methods of a Sum take the
// Windows of the same trace.
type Sum struct {
	exact  float64 // of windows that stand for themselves
	total  float64 // of the others
	floor  float64 // variance if calls come at random
	within float64 // of the window in which it was last added to
	at     int     // the number of that window among all; 0 for none
	rate   float64 // per ns, of the last of the others
	before int     // the number of that one among the others
	square float64 // sum of the squared differences of successive rates
}

// Add adds x for a call after the records that were observed.
func (s *Sum) Add(w *Windows, x float64) {
	weight := float64(w.Weight())
	switch {
	case !w.any:
		s.exact += x
		return
	case weight == 0:
		return
	case s.at != len(w.list):
		s.turn(w)
		s.at = len(w.list)
	}
	s.within += weight * x
	s.floor += weight * (weight - 1) * x * x
}

// turn completes the window that was last added to.
func (s *Sum) turn(w *Windows) {
	if s.at == 0 {
		return
	}
	x := w.list[s.at-1]
	if x.number == 0 {
		s.exact += s.within
	} else {
		s.total += s.within
		s.step(x.number, s.within/x.length)
	}
	s.within, s.at = 0, 0
}

// step adds the difference between the rate of a window and that of the one before. It was 0
// in windows in which nothing was added.
func (s *Sum) step(number int, rate float64) {
	switch {
	case number == s.before+1 && s.before > 0:
		s.square += (rate - s.rate) * (rate - s.rate)
	case s.before > 0:
		s.square += s.rate*s.rate + rate*rate
	case number > 1:
		s.square += rate * rate
	}
	s.rate, s.before = rate, number
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
	x := *s
	x.turn(w)
	e := Estimate{Value: x.exact + x.total}
	variance := x.variance(w)
	if variance == 0 {
		e.Low, e.High = e.Value, e.Value
		return e
	}
	e.Error = math.Sqrt(variance)
	wide := variance
	if w.sampled > 1 {
		t := student(max(2, 2*float64(w.sampled-1)/3)) / normal
		wide *= t * t
	}
	low, high := interval(x.total, wide)
	e.Low, e.High = x.exact+low, x.exact+high
	return e
}

// variance returns the variance of the sum, whose last window is complete.
func (s *Sum) variance(w *Windows) float64 {
	if s.before == 0 {
		return 0
	}
	if w.sampled < 2 {
		return max(s.floor, s.total*s.total) // one window shows nothing of the others
	}
	square := s.square
	if s.before < w.sampled {
		square += s.rate * s.rate
	}
	return max(s.floor, square/(2*float64(w.sampled-1))*w.squares)
}

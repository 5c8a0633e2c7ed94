// Package estimate estimates sums over all calls from calls that were recorded in windows,
// with the error of each sum.
//
// A call in a window stands for as many calls as the window has weight, so a sum of
// weights is unbiased ([trace.Window]) if windows do not change what the process does. But
// probes slow down a process that is busy: it would have made more calls in the time of the
// window. How many more follows from the processor time that it used for itself and for
// probes.
//
// The variance is estimated from the differences of successive windows, so a slow change of
// the process does not count as error. It is at least that of calls which come at random.
// What is not known exactly is the cost of a hit, which separates a process's own time from
// that of probes. The interval includes it.
package estimate

import "math"

// Sum is a sum over calls. The zero value is an empty sum. All methods of a Sum take the
// Windows of the same trace.
type Sum struct {
	seen   float64 // of all windows, as recorded
	exact  float64 // of windows that stand for themselves
	within value   // of the window in which it was last added to
	at     int     // the number of that window among all; 0 for none
	total  value   // of the others
	low    float64 // slowed of total, if a hit costs less than measured, and if it costs more
	high   float64
	floor  quadratic // variance if calls come at random
	rates  changes   // of the others
}

// Add adds x for a call after the records that were observed.
func (s *Sum) Add(w *Windows, x float64) {
	weight := float64(w.Weight())
	if weight > 0 {
		s.seen += x
	}
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
	s.within.plain += weight * x
	s.within.slowed += weight * (weight - 1) * x * x // the variance, until turn
}

// turn completes the window that was last added to.
func (s *Sum) turn(w *Windows) {
	if s.at == 0 {
		return
	}
	x := &w.list[s.at-1]
	sum, random := s.within.plain*x.scale, s.within.slowed*x.scale*x.scale
	if x.number == 0 {
		s.exact += sum
	} else {
		slow := x.spent.ratio(0)
		s.total.plain += sum
		s.total.slowed += sum * slow
		s.low += sum * x.spent.ratio(-w.doubt)
		s.high += sum * x.spent.ratio(w.doubt)
		s.floor.add(value{1, slow}, random)
		s.rates.step(x.number, value{sum / x.length, sum / x.length * slow})
	}
	s.within, s.at = value{}, 0
}

// Estimate is a sum with its error.
type Estimate struct {
	Value float64 `json:"value"`
	Error float64 `json:"error"` // standard error; 0 if the value is exact
	Low   float64 `json:"low"`   // the interval that contains the true value with 95 %
	High  float64 `json:"high"`
	// AtLeast means that only Low is known: there were too few windows to see how much they
	// differ, or they stand for a part of the recording, or the process hardly used time for
	// itself in them, so that it is not known how far probes slowed it down.
	AtLeast bool `json:"at_least,omitempty"`
}

// mostFactor is how many times as large as the lower bound the upper one may be because the
// cost of a hit is not known exactly. Beyond it, there is no upper bound.
const mostFactor = 4

// leastWindows is how many windows must stand for more than themselves, at least, if what they
// differ by is to show the error. With fewer, what was recorded is the lower bound.
const leastWindows = 5

// Estimate returns the sum and its error.
func (s *Sum) Estimate(w *Windows) Estimate {
	x := *s
	if w.settled || x.at < len(w.list) || x.at > 0 && w.list[x.at-1].number == 0 {
		x.turn(w) // else what the last window used is not known yet
	}
	delay := w.delay(0)
	sum := x.total.at(delay)
	e := Estimate{Value: x.exact + sum, Low: x.exact, High: x.exact}
	if sum == 0 {
		e.AtLeast = w.any && w.partial()
		return e
	}
	low, high := sum, sum
	if variance := x.variance(w, delay); variance > 0 {
		e.Error = math.Sqrt(variance)
		if w.sampled > 1 {
			t := student(max(2, 2*float64(w.sampled-1)/3)) / normal
			variance *= t * t
		}
		low, high = interval(sum, variance)
	}
	least := x.total.plain + w.delay(-w.doubt)*x.low
	most := x.total.plain + w.delay(w.doubt)*x.high
	e.Low, e.High = e.Low+low*least/sum, e.High+high*most/sum
	e.AtLeast = most > mostFactor*least || w.partial()
	if w.sampled < leastWindows {
		e.Low, e.AtLeast = x.seen, true
	}
	return e
}

// variance returns the variance of the sum, whose last window is complete.
func (s *Sum) variance(w *Windows, delay float64) float64 {
	floor := s.floor.at(delay)
	if w.sampled < 2 { // one window shows nothing of the others
		sum := s.total.at(delay)
		return max(floor, sum*sum)
	}
	return max(floor, s.rates.variance(w, delay))
}

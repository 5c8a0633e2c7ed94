package estimate

import "math"

// value is a sum that is not final: slowed, times the delay of the process, is to be added
// to plain.
type value struct{ plain, slowed float64 }

func (v *value) at(delay float64) float64 { return v.plain + delay*v.slowed }

// quadratic is a sum of squares of values.
type quadratic struct{ plain, cross, slowed float64 }

// add adds the square of a value.
func (q *quadratic) add(v value, times float64) {
	q.plain += times * v.plain * v.plain
	q.cross += times * v.plain * v.slowed
	q.slowed += times * v.slowed * v.slowed
}

// at returns the sum for a delay.
func (q *quadratic) at(delay float64) float64 {
	return q.plain + 2*delay*q.cross + delay*delay*q.slowed
}

// changes are the differences of successive windows that stand for more than themselves.
type changes struct {
	rate   value // per ns, of the last window with a value
	number int   // of that window, from 1
	square quadratic
}

// step adds the difference between the rate of a window and that of the one before. It was 0
// in windows that were left out.
func (c *changes) step(number int, rate value) {
	switch {
	case number == c.number+1 && c.number > 0:
		c.square.add(value{rate.plain - c.rate.plain, rate.slowed - c.rate.slowed}, 1)
	case c.number > 0:
		c.square.add(c.rate, 1)
		c.square.add(rate, 1)
	case number > 1:
		c.square.add(rate, 1)
	}
	c.rate, c.number = rate, number
}

// variance returns the variance of the sum over all windows, of which there must be two.
func (c *changes) variance(w *Windows, delay float64) float64 {
	square := c.square
	if c.number < w.sampled {
		square.add(c.rate, 1)
	}
	return math.Max(0, square.at(delay)) / (2 * float64(w.sampled-1)) * w.squares
}

// Limits of what differences mean.
const (
	likely  = 2.5  // standard errors that a sum may be from the whole
	unknown = 0.01 // of the whole, which counts as standard error in addition
)

// delay returns the share of the time for probes in windows for which the process would have
// used the processor for itself without them: 1 for a process that always has something to
// do, and 0 for one that answers requests in time. It is known because the process's own
// time is: what windows stand for, with that share, is the whole. 0 and 1 are taken if they
// are likely; another share has an error itself. doubt is how much more a hit costs than it
// was measured.
func (w *Windows) delay(doubt float64) float64 {
	if w.scaled.added <= 0 {
		return 0
	}
	if w.sampled > 1 {
		part := 1.0
		if w.covered < w.until-w.begun {
			part = float64(w.covered) / float64(w.until-w.begun)
		}
		whole := part * (w.all.used - w.all.added)
		from := func(delay float64) float64 {
			sum := w.scaled.used - (1-delay)*w.scaled.added
			return math.Abs(whole-sum) / (math.Sqrt(w.changes.variance(w, delay)) + unknown*whole + 1)
		}
		switch none, all := from(0), from(1); {
		case min(none, all) > likely:
		case none <= all:
			return 0
		default:
			return 1
		}
	}
	own := func(p *processor) float64 { return p.used - (1+doubt)*p.added }
	return min(1, max(0, (own(&w.all)-own(&w.scaled))/((1+doubt)*w.scaled.added)))
}

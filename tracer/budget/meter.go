package budget

import "time"

// Reading holds what is known of a process at one moment. It only grows.
type Reading struct {
	Time  time.Duration // of the clock that records have
	CPU   time.Duration // that the process has used
	Hits  time.Duration // CPU time that its hits of probes have cost it
	Moves time.Duration // CPU time for attaching and detaching probes
}

// added returns the processor time that recording has added.
func (r *Reading) added() time.Duration { return r.Hits + r.Moves }

// Interval is the time over which the budget holds.
const Interval = 10 * time.Second

// LeastCPU is how many processors a process counts as using if it uses less. Of such a
// process, 1 % is a thousandth of a processor.
const LeastCPU = 0.1

// keepEvery is the shortest time between two readings that are kept.
const keepEvery = 100 * time.Millisecond

// Spent is what recording has cost.
type Spent struct {
	CPU, Added time.Duration // used by the process, and added by recording it
	Worst      float64       // the largest added share of an Interval
	Over       float64       // share of the Intervals that exceed the budget
	Longest    time.Duration // the longest window
	Window     time.Duration // what a window costs however short it is
	Covered    time.Duration // the time that windows stand for
	Cut        int           // windows that were closed because they exceeded the budget by far
}

// meter compares readings over Interval.
type meter struct {
	share    float64
	first    Reading
	readings []Reading // of the last Interval, and one before it; oldest first
	judged   int       // Intervals
	over     int       // of these, that exceed the budget
	worst    float64   // share
}

// add takes a reading, and judges the Interval that ends with it.
func (m *meter) add(r Reading) {
	n := len(m.readings)
	if n == 0 {
		m.first, m.readings = r, []Reading{r}
		return
	}
	if r.Time-m.readings[n-1].Time < keepEvery {
		return
	}
	m.readings = append(m.readings, r)
	for len(m.readings) > 2 && m.readings[1].Time <= r.Time-Interval {
		m.readings = m.readings[1:]
	}
	old := m.old(r.Time)
	share := float64(r.added()-old.added()) / (rate(&old, &r) * float64(Interval))
	m.judged++
	if share > m.share {
		m.over++
	}
	m.worst = max(m.worst, share)
}

// old returns the reading of Interval ago, or the first one.
func (m *meter) old(now time.Duration) Reading {
	old, then := m.readings[0], now-Interval
	if len(m.readings) < 2 || old.Time >= then {
		return old
	}
	next := &m.readings[1]
	part := float64(then-old.Time) / float64(next.Time-old.Time)
	between := func(a, b time.Duration) time.Duration { return a + time.Duration(part*float64(b-a)) }
	return Reading{then, between(old.CPU, next.CPU), between(old.Hits, next.Hits), between(old.Moves, next.Moves)}
}

// rate returns the processors that the process used between two readings.
func rate(from, to *Reading) float64 {
	passed := to.Time - from.Time
	if passed <= 0 {
		return LeastCPU
	}
	return max(LeastCPU, float64(to.CPU-from.CPU)/float64(passed))
}

// usual returns the processors that the process used in the last Interval.
func (m *meter) usual(r Reading) float64 {
	old := m.old(r.Time)
	return float64(r.CPU-old.CPU) / float64(max(r.Time-old.Time, time.Millisecond))
}

// allowance returns the processor time that may be added in an Interval, and what was added
// in the last one. Only what the process uses for itself counts for the first.
func (m *meter) allowance(r Reading) (allowed, spent time.Duration) {
	old := m.old(r.Time)
	own := old
	own.CPU += r.Hits - old.Hits
	return time.Duration(m.share * rate(&own, &r) * float64(Interval)), r.added() - old.added()
}

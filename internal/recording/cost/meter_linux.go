package cost

import (
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
)

// Thresholds of warnings.
const (
	HighShare = 0.1  // of the processor time of the process that goes into tracing
	HighBusy  = 0.02 // processors that go into tracing; fewer do not matter
	HighLoss  = 0.01 // of the calls that are lost

	growth = 2 // of the slow-down since the last warning, for another one

	mostReadings = 60 // that a Meter keeps
)

// Reading holds the counters of a process at one moment.
type Reading struct {
	Hits        host.Hits     // of probes, also for calls that were lost or left out
	Calls, Lost uint64        // calls that were recorded, and that were not
	CPU         time.Duration // that the process has used
}

// Interval describes tracing between two readings.
type Interval struct {
	Rate  float64 // calls per second
	Share float64 // of the processor time of the process that went into tracing
	Busy  float64 // processors that went into tracing
	Lost  float64 // share of the calls that were lost
}

// Slower returns how many times as much processor time the process takes as without tracing,
// and whether that is the lower bound, because tracing takes nearly all of it.
func (i *Interval) Slower() (times float64, atLeast bool) {
	const long = 1e12 // ns: any time has the same result
	times, _, _, atLeast = (&trace.Cost{Used: long, Added: int64(i.Share * long)}).Slower()
	return times, atLeast
}

// factor is how many times as much processor time that is if nothing is in doubt.
func (i *Interval) factor() float64 { return 1 / (1 - i.Share) }

// Meter compares readings. The zero value has none yet.
type Meter struct {
	readings   []moment // the last ones, oldest first
	first      Reading  // of all
	last       Reading  // of those with processor time
	warned     float64  // the greatest slow-down of a warning
	warnedLoss bool     // of lost calls
}

// moment is a reading with its time.
type moment struct {
	Reading
	at time.Time
}

// arrived returns the calls that are known by now.
func (r *Reading) arrived() uint64 { return r.Calls + r.Lost }

// before returns the last reading since which probes were hit at least as often as calls
// arrived. Hits are counted when they happen, and calls when they are read: in a shorter
// interval some of the calls would be older than it.
func (m *Meter) before(r *Reading) *moment {
	i := len(m.readings) - 1
	for ; i > 0; i-- {
		b := &m.readings[i]
		if r.arrived()-b.arrived() <= r.Hits.Entries-b.Hits.Entries {
			break
		}
	}
	return &m.readings[i]
}

// OwnTime returns the processor time of this process.
func OwnTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) // cannot fail with these arguments
	return time.Duration(ts.Nano())
}

// Note takes a reading without comparing it.
func (m *Meter) Note(r Reading) { m.keep(&r, len(m.readings) == 0) }

// keep keeps what Total needs. A process that has ended may have no processor time.
func (m *Meter) keep(r *Reading, first bool) {
	if first {
		m.first = *r
	}
	if r.CPU > 0 {
		m.last = *r
	}
}

// Total returns what tracing has cost the process from the first reading to the last one with
// processor time. ok is false if there is no second one.
func (m *Meter) Total(costs host.Costs) (c trace.Cost, ok bool) {
	c.Used = int64(m.last.CPU - m.first.CPU)
	c.Added = int64(costs.Cost(m.last.Hits.Since(m.first.Hits)))
	return c, m.first.CPU > 0 && c.Used > 0
}

// Look takes a reading at the time now, and returns the interval since the last one, or
// since an earlier one if calls have arrived late. It reports whether to warn: if tracing
// costs the process much, and twice as much as at the last warning, or if many calls are
// lost for the first time. costs are those of a probe.
func (m *Meter) Look(r Reading, now time.Time, costs host.Costs) (i Interval, warn bool) {
	first := len(m.readings) == 0
	var before moment
	if !first {
		before = *m.before(&r)
	}
	m.keep(&r, first)
	m.readings = append(m.readings[max(0, len(m.readings)+1-mostReadings):], moment{r, now})
	passed := now.Sub(before.at)
	if first || passed <= 0 {
		return Interval{}, false
	}
	calls, lost := float64(r.Calls-before.Calls), float64(r.Lost-before.Lost)
	i.Rate = (calls + lost) / passed.Seconds()
	if calls+lost > 0 {
		i.Lost = lost / (calls + lost)
	}
	cost := costs.Cost(r.Hits.Since(before.Hits))
	i.Busy = cost.Seconds() / passed.Seconds()
	i.Share = (&trace.Cost{Used: int64(r.CPU - before.CPU), Added: int64(cost)}).Share()
	much := cost.Seconds() >= HighBusy*max(1, passed.Seconds()) // also of a short interval
	if i.Share >= HighShare && much && i.factor() >= growth*m.warned {
		m.warned, warn = i.factor(), true
	}
	if i.Lost >= HighLoss && !m.warnedLoss {
		m.warnedLoss, warn = true, true
	}
	return i, warn
}

package cost

import (
	"time"

	"rtrace-bpf/tracer/host"
)

// Thresholds of warnings.
const (
	HighShare = 0.1  // of the processor time of the process that goes into tracing
	HighBusy  = 0.02 // processors that go into tracing; fewer do not matter
	HighLoss  = 0.01 // of the calls that are lost

	mostShare = 0.95 // larger shares are not distinguished: the measurement is not that exact
	growth    = 2    // of the slow-down since the last warning, for another one

	// shortest is the least time between two readings that are compared: calls are counted
	// when they are read, and a backlog of them would seem to be of a moment.
	shortest = 200 * time.Millisecond
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

// Factor returns how many times as much processor time the process takes as without
// tracing.
func (i *Interval) Factor() float64 { return 1 / (1 - i.Share) }

// moment is a reading with its time.
type moment struct {
	Reading
	at time.Time
}

// Meter compares readings. The zero value has none yet.
type Meter struct {
	last       moment
	earlier    moment  // the one before
	warned     float64 // the greatest slow-down of a warning
	warnedLoss bool    // of lost calls
}

// Look takes a reading at the time now, and returns the interval since the last one, and
// whether to warn: if tracing costs the process much, and twice as much as at the last
// warning, or if many calls are lost for the first time. costs are those of a probe.
func (m *Meter) Look(r Reading, now time.Time, costs host.Costs) (i Interval, warn bool) {
	before := m.last
	if now.Sub(before.at) < shortest && !m.earlier.at.IsZero() {
		before = m.earlier
	}
	passed := now.Sub(before.at)
	m.last, m.earlier = moment{r, now}, before
	if before.at.IsZero() || passed <= 0 {
		return Interval{}, false
	}
	calls, lost := float64(r.Calls-before.Calls), float64(r.Lost-before.Lost)
	i.Rate = (calls + lost) / passed.Seconds()
	if calls+lost > 0 {
		i.Lost = lost / (calls + lost)
	}
	cost := costs.Cost(r.Hits.Since(before.Hits))
	i.Busy = cost.Seconds() / passed.Seconds()
	if cpu := r.CPU - before.CPU; cpu > 0 {
		i.Share = min(cost.Seconds()/cpu.Seconds(), mostShare)
	}
	much := cost.Seconds() >= HighBusy*max(1, passed.Seconds()) // also of a short interval
	if i.Share >= HighShare && much && i.Factor() >= growth*m.warned {
		m.warned, warn = i.Factor(), true
	}
	if i.Lost >= HighLoss && !m.warnedLoss {
		m.warnedLoss, warn = true, true
	}
	return i, warn
}

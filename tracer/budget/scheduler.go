package budget

import (
	"math"
	"math/rand/v2"
	"time"
)

// Sizes of windows and stretches.
const (
	firstWindow = 5 * time.Millisecond
	leastWindow = time.Millisecond
	longWindow  = time.Second // the longest window
	mostWindows = 8           // in an Interval, on average
	tenfold     = 10          // a stretch lasts at least so many times as detaching

	// Two windows of rare stretches, which would exceed the budget together, are in one
	// Interval for less than a thousandth of the time.
	rareWindow    = 50 * time.Millisecond
	rareStretch   = 6 * Interval
	scarceStretch = 100 * Interval // of windows that exceed the budget alone

	careful      = 0.8  // share of the budget that is planned
	excess       = 1.25 // of the planned cost, before a coin is tossed
	leastStage   = 0.05 // of the budget, before a coin is tossed
	ceiling      = 1.5  // of the budget; a window that reaches it is closed for certain
	firstShare   = 0.2  // of the budget, for the first window
	rememberLast = 8    // windows whose costs are remembered
)

// Window is a time in which the process is recorded.
type Window struct {
	Until   time.Duration // its end
	Weight  uint64        // calls that each call in it stands for
	Stretch time.Duration // that it stands for; 0 if it goes on with another weight
}

// Decision is what to do with an open window.
type Decision uint8

// The decisions.
const (
	Continue Decision = iota
	Reweigh           // the window goes on with the weight and the end that Window returns
	Close
)

// Scheduler decides when windows open and close. Its methods must not be called
// concurrently.
type Scheduler struct {
	coin  *rand.Rand
	meter meter
	costs costs

	window  Window        // that is open, or was last
	length  time.Duration // of the next window
	weight  uint64        // of the next window; 0 if no window is affordable
	next    time.Duration // when the next window is to open
	from    time.Duration // when the stretch begins
	stretch time.Duration // when the stretch ends
	covered time.Duration // the length of the stretches before it
	ended   time.Duration // when the last of these ends
	quota   time.Duration // of Reading.Hits, at which a coin decides about the window
	stage   time.Duration // how much the quota grows if the window stays open

	longest time.Duration // window
	cut     int           // windows that were closed for certain
}

// New returns a scheduler that adds at most share of the processor time of a process. began
// is a reading from before anything was attached. random decides where windows are.
func New(share float64, began Reading, random rand.Source) *Scheduler {
	s := &Scheduler{coin: rand.New(random), meter: meter{share: share}}
	s.meter.add(began)
	s.costs.closed = began
	s.length, s.weight = firstWindow, 1
	s.next, s.from, s.stretch = began.Time, began.Time, began.Time
	return s
}

// Due reports whether the probes are to be attached, to open the next window.
func (s *Scheduler) Due(r Reading) bool {
	s.meter.add(r)
	if s.weight == 0 && r.Time >= s.next {
		s.plan(r)
	}
	return s.weight > 0 && r.Time >= s.next
}

// Next returns when Due is to be called again.
func (s *Scheduler) Next() time.Duration { return s.next }

// Open begins the window that is due: the probes are attached, and record.
func (s *Scheduler) Open(r Reading) Window {
	s.meter.add(r)
	s.begin(r)
	return s.window
}

// begin begins the next window.
func (s *Scheduler) begin(r Reading) {
	s.costs.open(r)
	if !s.costs.known() {
		s.from = r.Time
	}
	s.window = Window{r.Time + s.length, s.weight, time.Duration(s.weight) * s.length}
	s.stretch = max(s.stretch, s.window.Until) // the probes may have been attached late
	allowed, _ := s.meter.allowance(r)
	planned := time.Duration(excess * s.costs.rate(s.meter.usual(r)) * float64(s.length))
	if !s.costs.known() {
		planned = time.Duration(firstShare * float64(allowed))
	}
	s.stage = max(planned, time.Duration(leastStage*float64(allowed)))
	s.quota = r.Hits + s.stage
}

// Window returns the window that is open, or was last.
func (s *Scheduler) Window() Window { return s.window }

// Until returns when the open window is to close.
func (s *Scheduler) Until() time.Duration { return s.window.Until }

// Look decides about the open window.
func (s *Scheduler) Look(r Reading) Decision {
	s.meter.add(r)
	if r.Time >= s.window.Until {
		s.longest = max(s.longest, s.costs.lasted(r))
		s.costs.measure(r, s.meter.usual(r))
		if s.window.Until < s.stretch || !s.affordsAll(r) {
			return Close
		}
		s.cover()
		s.from, s.stretch = s.window.Until, r.Time
		s.length, s.weight = longWindow, 1
		s.begin(r)
		return Reweigh
	}
	if r.Hits < s.quota {
		return Continue
	}
	allowed, spent := s.meter.allowance(r)
	switch {
	case float64(spent) > ceiling*float64(allowed):
		s.cut++
	case s.coin.Uint64()&1 == 0:
		s.window.Weight, s.window.Stretch = 2*s.window.Weight, 0
		s.quota = r.Hits + s.stage
		return Reweigh
	}
	s.window.Until = r.Time
	s.longest = max(s.longest, s.costs.lasted(r))
	s.costs.measure(r, s.meter.usual(r))
	return Close
}

// Closed plans the next window, when the probes are detached.
func (s *Scheduler) Closed(r Reading) {
	s.meter.add(r)
	s.costs.close(r)
	s.plan(r)
}

// affordsAll reports whether the process can be recorded without a pause.
func (s *Scheduler) affordsAll(r Reading) bool {
	allowed, _ := s.meter.allowance(r)
	return s.costs.rate(s.meter.usual(r))*float64(Interval) <= careful*float64(allowed)
}

// plan decides about the next stretch, and where its window is.
func (s *Scheduler) plan(r Reading) {
	s.cover()
	start := max(s.stretch, r.Time)
	allowed, spent := s.meter.allowance(r)
	length, stretch := longWindow, longWindow
	if !s.affordsAll(r) {
		var cost float64
		length, stretch, cost = s.size(r, float64(allowed))
		switch {
		case length == 0:
			s.wait(r.Time + Interval)
			return
		case cost+float64(spent) > float64(allowed):
			s.wait(start + Interval/tenfold)
			return
		}
		stretch = max(stretch, tenfold*s.costs.moving())
	}
	slots := max(1, uint64(math.Round(float64(stretch)/float64(length))))
	s.length, s.weight = length, slots
	s.next = start + time.Duration(s.coin.Uint64N(slots))*length
	s.from, s.stretch = start, start+time.Duration(slots)*length
}

// wait has Due plan again at a time. No window stands for the time until then.
func (s *Scheduler) wait(until time.Duration) {
	s.weight, s.next = 0, until
	s.from, s.stretch = until, until
}

// cover adds the stretch to the time that windows stand for. The next one begins when it
// ends, or later.
func (s *Scheduler) cover() { s.covered, s.ended = s.covered+s.stretch-s.from, s.stretch }

// size returns the length of the next window, that of its stretch, and what the window
// costs. If no window is affordable, they are 0.
func (s *Scheduler) size(r Reading, allowed float64) (length, stretch time.Duration, cost float64) {
	fixed, rate := float64(s.costs.fixed()), s.costs.rate(s.meter.usual(r))
	fits := func(cost float64) time.Duration {
		return min(time.Duration((cost-fixed)/rate), longWindow)
	}
	// An Interval can contain two windows more than the average. A third of the cost of a
	// window may be fixed.
	if n := min(careful*allowed/(3*fixed)-2, mostWindows); n >= 1 {
		cost = careful * allowed / (n + 2)
		if l := fits(cost); l >= leastWindow {
			return l, time.Duration(float64(Interval) / n), cost
		}
	}
	cost = careful * allowed
	if l := fits(cost / 2); l >= leastWindow {
		return l, 3 * Interval / 2, cost / 2
	}
	if l := fits(cost); l >= leastWindow {
		return min(l, rareWindow), rareStretch, cost
	}
	if cost = fixed + rate*float64(leastWindow); cost < ceiling*allowed {
		return leastWindow, scarceStretch, cost
	}
	return 0, 0, 0
}

// Spent returns what recording has cost up to r.
func (s *Scheduler) Spent(r Reading) Spent {
	m := &s.meter
	m.add(r)
	spent := Spent{
		CPU: r.CPU - m.first.CPU, Added: r.added() - m.first.added(), Worst: m.worst,
		Longest: s.longest, Window: s.costs.fixed(), Cut: s.cut,
		Covered: s.covered - max(0, s.ended-r.Time) + max(0, min(r.Time, s.stretch)-s.from),
	}
	if m.judged > 0 {
		spent.Over = float64(m.over) / float64(m.judged)
	}
	return spent
}

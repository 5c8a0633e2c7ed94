package budget

import (
	"math/rand/v2"
	"testing"
	"time"
)

// machine is a simulated process, and the tracer that records it.
type machine struct {
	cpu  func(at time.Duration) float64 // processors that the process uses for itself
	cost func(at time.Duration) float64 // processors that its hits cost while probes are in place

	attach, detach       time.Duration // how long they take
	attachCPU, detachCPU time.Duration

	now      Reading
	attached bool
	readings []Reading // one each keepEvery
}

const step = time.Millisecond

// pass lets time pass.
func (m *machine) pass(d time.Duration) {
	for end := m.now.Time + d; m.now.Time < end; {
		dt := min(step, end-m.now.Time)
		used := time.Duration(m.cpu(m.now.Time) * float64(dt))
		if m.attached {
			hits := time.Duration(m.cost(m.now.Time) * float64(dt))
			m.now.Hits += hits
			used += hits
		}
		m.now.CPU += used
		m.now.Time += dt
		if n := len(m.readings); n == 0 || m.now.Time-m.readings[n-1].Time >= keepEvery {
			m.readings = append(m.readings, m.now)
		}
	}
}

// opened is a window that the simulation had.
type opened struct {
	from time.Duration
	Window
}

// run records for a time, and returns the windows.
func (m *machine) run(share float64, d time.Duration, seed uint64) (s *Scheduler, windows []opened) {
	m.readings = append(m.readings, m.now)
	s = New(share, m.now, rand.NewPCG(seed, 1))
	for m.now.Time < d {
		if !s.Due(m.now) {
			m.pass(min(max(s.Next()-m.now.Time, step), 20*time.Millisecond))
			continue
		}
		m.attached = true
		m.pass(m.attach)
		m.now.Moves += m.attachCPU
		windows = append(windows, opened{m.now.Time, s.Open(m.now)})
		for open := true; open && m.now.Time < d; {
			m.pass(step)
			was := &windows[len(windows)-1]
			switch s.Look(m.now) {
			case Close:
				was.Until, open = s.Window().Until, false
			case Reweigh:
				was.Until = min(was.Until, m.now.Time)
				windows = append(windows, opened{m.now.Time, s.Window()})
			}
		}
		m.pass(m.detach / 10) // of which the probes are in place
		m.attached = false
		m.pass(m.detach - m.detach/10)
		m.now.Moves += m.detachCPU
		s.Closed(m.now)
	}
	return s, windows
}

// intervals returns the share of Intervals in which more than share was added, and the
// largest share.
func (m *machine) intervals(share float64) (over, worst float64) {
	n, from := 0, 0
	for to := range m.readings {
		r := &m.readings[to]
		for m.readings[from].Time < r.Time-Interval {
			from++
		}
		old := &m.readings[from]
		if r.Time < Interval {
			continue
		}
		x := float64(r.added()-old.added()) / (rate(old, r) * float64(Interval))
		n++
		if x > share {
			over++
		}
		worst = max(worst, x)
	}
	return over / float64(n), worst
}

// steady returns a constant.
func steady(x float64) func(time.Duration) float64 { return func(time.Duration) float64 { return x } }

// processes are simulated. The costs are those of a machine with 0.5 µs per hit.
func processes() map[string]*machine {
	all := map[string]*machine{
		"hot":      {cpu: steady(0.1), cost: steady(0.9)},
		"threads":  {cpu: steady(1), cost: steady(3)},
		"moderate": {cpu: steady(1), cost: steady(0.1)},
		"quiet":    {cpu: steady(1), cost: steady(0.002)},
		"idle":     {cpu: steady(0.005), cost: steady(0.001)},
		"bursts": {cpu: steady(1), cost: func(at time.Duration) float64 {
			if at%(7*time.Second) < time.Second {
				return 0.9
			}
			return 0.01
		}},
		"explodes": {cpu: steady(1), cost: func(at time.Duration) float64 {
			if at > time.Minute {
				return 0.9
			}
			return 0.003
		}},
	}
	for _, m := range all {
		m.attach, m.detach = 3*time.Millisecond, 60*time.Millisecond
		m.attachCPU, m.detachCPU = time.Millisecond, 4*time.Millisecond
	}
	// A process that is slowed down uses its processor time for the hits.
	all["hot"].cpu = func(time.Duration) float64 {
		if all["hot"].attached {
			return 0.1
		}
		return 1
	}
	return all
}

// The added time stays within the budget in 99 of 100 intervals, all recordings of a
// process together, and within its double in all.
func TestBudgetHolds(t *testing.T) {
	const seeds = 5
	for name := range processes() {
		for _, share := range []float64{0.01, 0.05, 0.2} {
			sum := 0.0
			for seed := range uint64(seeds) {
				m := processes()[name]
				s, windows := m.run(share, 10*time.Minute, seed)
				over, worst := m.intervals(share)
				sum += over
				if worst > 2*share {
					t.Errorf("%s at %v, seed %d: in an interval, %.4f was added", name, share, seed, worst)
				}
				if len(windows) < 5 {
					t.Errorf("%s at %v, seed %d: %d windows", name, share, seed, len(windows))
				}
				spent := s.Spent(m.now)
				t.Logf("%s at %v: %d windows, %.2f %% over, worst %.4f, added %.4f, %+v", name, share, len(windows), 100*over, worst, float64(spent.Added)/float64(spent.CPU), spent)
				// It judges parts of intervals as well, at the beginning.
				if spent.Worst < worst*0.9 || spent.Worst > 2*share {
					t.Errorf("%s at %v, seed %d: the scheduler reports %.4f for the worst interval, which had %.4f", name, share, seed, spent.Worst, worst)
				}
			}
			if sum/seeds > 0.01 {
				t.Errorf("%s at %v: %.1f %% of the intervals exceed the budget", name, share, 100*sum/seeds)
			}
		}
	}
}

// Weights and lengths are fixed when a window opens, and each slot of a stretch is as
// likely as the others.
func TestSlotsAreEquallyLikely(t *testing.T) {
	m := &machine{cpu: steady(1), cost: steady(0.3), attachCPU: time.Millisecond, detachCPU: time.Millisecond}
	const tenths = 10
	var places [tenths]float64
	n := 0.0
	for seed := range uint64(40) {
		m.now = Reading{}
		s, windows := m.run(0.05, 2*time.Minute, seed)
		at := windows[0].Until
		for _, w := range windows[1:] {
			if w.Stretch != time.Duration(w.Weight)*(w.Until-w.from) {
				t.Fatalf("%+v", w)
			}
			places[int(tenths*(w.from-at)/w.Stretch)]++
			at += w.Stretch
			n++
		}
		// Stretches follow each other, but for a step of the simulation.
		if spent := s.Spent(m.now); spent.Covered < m.now.Time*99/100 || spent.Covered > m.now.Time {
			t.Errorf("windows stand for %v of %v", spent.Covered, m.now.Time)
		}
	}
	square := 0.0
	for _, x := range places {
		square += (x - n/tenths) * (x - n/tenths) / (n / tenths)
	}
	// The 99.9th percentile of chi-square with nine degrees of freedom.
	if square > 27.9 {
		t.Errorf("chi-square %.1f of %v", square, places)
	}
}

// A window that is too expensive even at its shortest is not opened again, until the process
// uses more processor time.
func TestUnaffordable(t *testing.T) {
	m := &machine{cpu: steady(0.2), cost: steady(0.2), attachCPU: 50 * time.Millisecond, detachCPU: 50 * time.Millisecond}
	s, windows := m.run(0.01, time.Minute, 1)
	if spent := s.Spent(m.now); len(windows) != 1 || spent.Window < 100*time.Millisecond || spent.Covered != firstWindow {
		t.Errorf("%d windows, %+v", len(windows), spent)
	}
	m.cpu = steady(8)
	m.now.Time = 0
	if _, windows = m.run(0.2, time.Minute, 1); len(windows) < 5 {
		t.Errorf("%d windows", len(windows))
	}
}

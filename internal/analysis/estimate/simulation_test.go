package estimate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/budget"
)

// The simulated recordings.
const (
	length = 100 * time.Second
	share  = 0.05
	runs   = 100
	// A hit costs 0.6 µs, so 0.0006 processors for 1,000 calls a second. Each simulated call
	// stands for many such calls.
	hit = 300 * time.Microsecond
)

// Tests of the estimates, chosen before they were run: with unbiased estimates each fails
// for one set of seeds in a thousand or less.
const (
	mostZ      = 3.3  // of the mean of all runs, for each site
	mostSquare = 27.9 // sum of the squares of the nine sites' z: the 99.9th percentile of chi-square
	// The share of the 95 % intervals that contain the truth.
	leastCovered, mostCovered   = 0.90, 0.99
	leastCoveredSite            = 0.85
	leastRoulettes, leastWindow = 30, 20 // so that the test tests something
)

// site is a call site that is called at times, which are sorted.
type site struct {
	name  string
	times []time.Duration
}

// calls returns the times of calls at a rate per second.
func calls(rate func(at time.Duration) float64, random *rand.Rand) (times []time.Duration) {
	const dt = 100 * time.Microsecond
	due := 0.5
	for at := time.Duration(0); at < length; at += dt {
		n := rate(at) * dt.Seconds()
		if random != nil {
			if random.Float64() < n {
				times = append(times, at+time.Duration(random.Int64N(int64(dt))))
			}
			continue
		}
		for due += n; due >= 1; due-- {
			times = append(times, at)
		}
	}
	return times
}

// pulses returns a rate that is high for a part of each period, and 0 else.
func pulses(rate float64, period, high, from time.Duration) func(time.Duration) float64 {
	return func(at time.Duration) float64 {
		if (at+from)%period < high {
			return rate
		}
		return 0
	}
}

// program returns the call sites of a simulated process.
func program() []site {
	random := rand.New(rand.NewPCG(7, 7))
	constant := func(rate float64) func(time.Duration) float64 { return func(time.Duration) float64 { return rate } }
	all := map[string][]time.Duration{
		"periodic":     calls(constant(200), nil),
		"random":       calls(constant(100), random),
		"rare":         calls(constant(8), random),
		"pulses 20 ms": calls(pulses(400, 20*time.Millisecond, 5*time.Millisecond, 0), nil),
		"pulses 1 s":   calls(pulses(1000, time.Second, 50*time.Millisecond, 0), nil),
		// The period of windows, if they had one.
		"pulses 1.25 s": calls(pulses(400, 1250*time.Millisecond, 125*time.Millisecond, 600*time.Millisecond), nil),
		"grows":         calls(func(at time.Duration) float64 { return 200 * at.Seconds() / length.Seconds() }, random),
		// Windows in which this happens are closed early.
		"explodes": calls(pulses(3000, 3*time.Second, 400*time.Millisecond, time.Second), nil),
		"ends":     calls(func(at time.Duration) float64 { return max(0, 100-3*at.Seconds()) }, random),
	}
	var sites []site
	for name, times := range all {
		slices.Sort(times)
		sites = append(sites, site{name, times})
	}
	slices.SortFunc(sites, func(a, b site) int { return len(a.name) - len(b.name) })
	return sites
}

// within returns the calls in [from, to).
func (s *site) within(from, to time.Duration) []time.Duration {
	i, _ := slices.BinarySearch(s.times, from)
	j, _ := slices.BinarySearch(s.times, to)
	return s.times[i:max(i, j)]
}

// recorder records a process in windows.
type recorder struct {
	sites     []site
	scheduler *budget.Scheduler
	windows   Windows
	sums      []Sum
	now       budget.Reading
	roulettes int
}

// add lets a millisecond pass in which the probes are in place.
func (r *recorder) add(d time.Duration, recorded bool) {
	from := r.now.Time
	r.now.Time += d
	r.now.CPU += d
	for i := range r.sites {
		for _, t := range r.sites[i].within(from, r.now.Time) {
			r.now.Hits += hit
			if recorded && t < r.scheduler.Until() {
				r.sums[i].Add(&r.windows, 1)
			}
		}
	}
}

// observe passes the scheduler's window to the analysis.
func (r *recorder) observe(stretch time.Duration) {
	w := r.scheduler.Window()
	r.windows.Observe(&trace.Record{Kind: trace.KindWindow, Time: int64(r.now.Time), Window: trace.Window{
		Weight: w.Weight, Until: int64(w.Until), Stretch: int64(stretch),
	}})
}

// record records the process once.
func record(sites []site, seed uint64) *recorder {
	r := &recorder{sites: sites, sums: make([]Sum, len(sites))}
	r.scheduler = budget.New(share, r.now, rand.NewPCG(seed, seed))
	s := r.scheduler
	for r.now.Time < length {
		if !s.Due(r.now) {
			d := max(time.Millisecond, s.Next()-r.now.Time)
			r.now.Time += d
			r.now.CPU += d
			continue
		}
		r.now.Moves += time.Millisecond
		w := s.Open(r.now)
		r.observe(w.Stretch)
		for open := true; open && r.now.Time < length; {
			r.add(time.Millisecond, true)
			switch until := s.Until(); s.Look(r.now) {
			case budget.Close:
				if s.Until() < until {
					r.roulettes++
				}
				r.windows.Observe(&trace.Record{Kind: trace.KindWindow, Time: int64(min(s.Until(), r.now.Time))})
				open = false
			case budget.Reweigh:
				w := s.Window()
				if w.Stretch == 0 {
					r.roulettes++
				}
				r.observe(w.Stretch)
			}
		}
		r.add(time.Millisecond, false)
		r.now.Moves += 2 * time.Millisecond
		s.Closed(r.now)
	}
	return r
}

// Estimates are unbiased, also for programs that are periodic or become expensive, and
// their intervals contain the truth as often as they promise.
func TestSimulation(t *testing.T) {
	sites := program()
	type result struct{ sum, square, covered float64 }
	results := make([]result, len(sites))
	roulettes, cut := 0, 0
	for seed := range uint64(runs) {
		r := record(sites, seed)
		roulettes += r.roulettes
		spent := r.scheduler.Spent(r.now)
		cut += spent.Cut
		if n := r.windows.Summary().Windows; n < leastWindow || spent.Covered < length-length/100 {
			t.Fatalf("seed %d: %d windows, which stand for %v", seed, n, spent.Covered)
		}
		for i := range sites {
			e, truth, x := r.sums[i].Estimate(&r.windows), float64(len(sites[i].times)), &results[i]
			x.sum += e.Value
			x.square += e.Value * e.Value
			if e.Low <= truth && truth <= e.High {
				x.covered++
			}
		}
	}
	squares, covered := 0.0, 0.0
	for i, x := range results {
		mean, truth := x.sum/runs, float64(len(sites[i].times))
		spread := math.Sqrt((x.square/runs - mean*mean) / (runs - 1))
		z := (mean - truth) / spread
		t.Logf("%-14s truth %6.0f, mean %8.1f, z %5.2f, one run ± %4.1f %%, %.0f %% covered", sites[i].name, truth, mean, z, 100*spread*math.Sqrt(runs)/truth, 100*x.covered/runs)
		if math.Abs(z) > mostZ {
			t.Errorf("%s: the mean of %d runs is %.0f, the truth %.0f: z = %.2f", sites[i].name, runs, mean, truth, z)
		}
		if x.covered < leastCoveredSite*runs {
			t.Errorf("%s: %.0f of %d intervals contain the truth", sites[i].name, x.covered, runs)
		}
		squares += z * z
		covered += x.covered / runs / float64(len(sites))
	}
	if squares > mostSquare {
		t.Errorf("the squares of z sum up to %.1f", squares)
	}
	if covered < leastCovered || covered > mostCovered {
		t.Errorf("%.1f %% of all intervals contain the truth", 100*covered)
	}
	if roulettes < leastRoulettes {
		t.Errorf("%d windows became more expensive than planned", roulettes)
	}
	t.Logf("z² %.1f, %.1f %% covered, %d coins, %d cut", squares, 100*covered, roulettes, cut)
}

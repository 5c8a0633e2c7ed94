package estimate

import (
	"cmp"
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
)

// Tests of the estimates, chosen before they were run: with unbiased estimates each fails
// for one set of seeds in a thousand or less.
const (
	mostZ      = 3.3  // of the mean of all runs, for each site
	mostSquare = 27.9 // sum of the squares of the nine sites' z: the 99.9th percentile of chi-square
	// The share of the 95 % intervals that contain the truth.
	leastWithin, mostWithin     = 0.90, 0.99
	leastCoveredSite            = 0.85
	leastRoulettes, leastWindow = 30, 20 // so that the test tests something
)

// site is a call site that is called at times, which are sorted.
type site struct {
	name  string
	times []time.Duration
}

// calls returns the times of calls at a rate per second.
func calls(rate func(at time.Duration) float64, random *rand.Rand, more float64) (times []time.Duration) {
	const dt = 100 * time.Microsecond
	due := 0.5
	for at := time.Duration(0); at < length; at += dt {
		n := more * rate(at) * dt.Seconds()
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
func program(times float64) []site {
	random := rand.New(rand.NewPCG(7, 7))
	constant := func(rate float64) func(time.Duration) float64 { return func(time.Duration) float64 { return rate } }
	all := map[string][]time.Duration{
		"periodic":     calls(constant(200), nil, times),
		"random":       calls(constant(100), random, times),
		"rare":         calls(constant(8), random, times),
		"pulses 20 ms": calls(pulses(400, 20*time.Millisecond, 5*time.Millisecond, 0), nil, times),
		"pulses 1 s":   calls(pulses(1000, time.Second, 50*time.Millisecond, 0), nil, times),
		// The period of windows, if they had one.
		"pulses 1.25 s": calls(pulses(400, 1250*time.Millisecond, 125*time.Millisecond, 600*time.Millisecond), nil, times),
		"grows":         calls(func(at time.Duration) float64 { return 200 * at.Seconds() / length.Seconds() }, random, times),
		// Windows in which this happens are closed early.
		"explodes": calls(pulses(3000, 3*time.Second, 400*time.Millisecond, time.Second), nil, times),
		"ends":     calls(func(at time.Duration) float64 { return max(0, 100-3*at.Seconds()) }, random, times),
	}
	var sites []site
	for name, times := range all {
		slices.Sort(times)
		sites = append(sites, site{name, times})
	}
	slices.SortFunc(sites, func(a, b site) int { return len(a.name) - len(b.name) })
	return sites
}

// until returns the number of calls up to a time.
func (s *site) until(t time.Duration) float64 {
	n, _ := slices.BinarySearch(s.times, t)
	return float64(n)
}

// call is a call of a site.
type call struct {
	at   time.Duration
	site int
}

// inOrder returns the calls of all sites.
func inOrder(sites []site) (all []call) {
	for i := range sites {
		for _, t := range sites[i].times {
			all = append(all, call{t, i})
		}
	}
	slices.SortStableFunc(all, func(a, b call) int { return cmp.Compare(a.at, b.at) })
	return all
}

// kind is how a simulated process reacts to probes.
type kind struct {
	name string
	// busy means that it always uses a processor: with probes in place it makes fewer calls
	// per second. The times of its calls are those of its own processor time. Other
	// processes answer requests, which come at the times of their calls.
	busy  bool
	calls float64       // how many times as many it makes
	hit   time.Duration // what a hit costs
	// bias is allowed, as a share of the truth. A process that is slowed down does not see
	// the end of a window in the same place of its bursts.
	bias float64
}

// What requests cost a process that answers them.
const (
	requestCPU = 200 * time.Microsecond // per call
	idleCPU    = 0.05                   // processors, in addition
)

// recorder records a process in windows.
type recorder struct {
	kind
	next      []call // that it will make
	scheduler *budget.Scheduler
	windows   Windows
	sums      []Sum
	now       budget.Reading
	own       time.Duration // of the process
	debt      time.Duration // of hits that are not paid
	roulettes int
}

// pass lets time pass. probed means that the probes are in place, and recorded that a window
// is open.
func (r *recorder) pass(d time.Duration, probed, recorded bool) {
	if r.busy {
		r.run(d, probed, recorded)
	} else {
		r.serve(d, probed, recorded)
	}
}

// run lets a process that is always busy run.
func (r *recorder) run(d time.Duration, probed, recorded bool) {
	r.now.Time, r.now.CPU = r.now.Time+d, r.now.CPU+d
	d -= r.pay(d)
	if !probed {
		r.own += d
		r.skip(r.own)
		return
	}
	for len(r.next) > 0 && d > 0 && r.next[0].at-r.own <= d {
		d -= r.next[0].at - r.own
		r.own = r.next[0].at
		r.call(recorded)
		r.debt = r.hit
		d -= r.pay(d)
	}
	r.own += d
}

// pay spends up to d on hits.
func (r *recorder) pay(d time.Duration) time.Duration {
	paid := min(r.debt, d)
	r.debt, r.now.Hits = r.debt-paid, r.now.Hits+paid
	return paid
}

// serve lets a process answer the requests of a time.
func (r *recorder) serve(d time.Duration, probed, recorded bool) {
	r.now.Time += d
	used := time.Duration(idleCPU * float64(d))
	for len(r.next) > 0 && r.next[0].at < r.now.Time {
		used += requestCPU
		if r.call(recorded); probed {
			used, r.now.Hits = used+r.hit, r.now.Hits+r.hit
		}
	}
	r.now.CPU += used
}

// skip makes the calls up to a time, without probes.
func (r *recorder) skip(to time.Duration) {
	n, _ := slices.BinarySearchFunc(r.next, to, func(c call, to time.Duration) int { return cmp.Compare(c.at, to) })
	r.next = r.next[n:]
}

// call makes the next call.
func (r *recorder) call(recorded bool) {
	i := r.next[0].site
	r.next = r.next[1:]
	if recorded {
		r.sums[i].Add(&r.windows, 1)
	}
}

// clock returns the time of the calls that come next.
func (r *recorder) clock() time.Duration {
	if r.busy {
		return r.own
	}
	return r.now.Time
}

// observe passes a record to the analysis.
func (r *recorder) observe(w trace.Window) {
	w.Used, w.Added = int64(r.now.CPU), int64(r.now.Hits)
	r.windows.Observe(&trace.Record{Kind: trace.KindWindow, Time: int64(r.now.Time), Window: w})
}

// open passes the scheduler's window to the analysis.
func (r *recorder) open(stretch time.Duration) {
	w := r.scheduler.Window()
	r.observe(trace.Window{Weight: w.Weight, Until: int64(w.Until), Stretch: int64(stretch)})
}

// record records the process once.
func record(k kind, sites int, calls []call, seed uint64) *recorder {
	r := &recorder{kind: k, next: calls, sums: make([]Sum, sites)}
	r.scheduler = budget.New(share, r.now, rand.NewPCG(seed, seed))
	s := r.scheduler
	for r.now.Time < length {
		if !s.Due(r.now) {
			r.pass(max(time.Millisecond, s.Next()-r.now.Time), false, false)
			continue
		}
		r.now.Moves += time.Millisecond
		w := s.Open(r.now)
		r.open(w.Stretch)
		for open := true; open && r.now.Time < length; {
			r.pass(time.Millisecond, true, true)
			switch until := s.Until(); s.Look(r.now) {
			case budget.Close:
				if s.Until() < until {
					r.roulettes++
				}
				r.observe(trace.Window{})
				open = false
			case budget.Reweigh:
				w := s.Window()
				if w.Stretch == 0 {
					r.roulettes++
				}
				r.open(w.Stretch)
			}
		}
		r.pass(time.Millisecond, true, false)
		r.now.Moves += 2 * time.Millisecond
		s.Closed(r.now)
	}
	r.windows.Observe(&trace.Record{Kind: trace.KindCost, Time: int64(r.now.Time), Cost: trace.Cost{Used: int64(r.now.CPU), Added: int64(r.now.Hits)}})
	return r
}

// kinds are simulated. The probes slow the busy processes down to a half and to a tenth.
func kinds() []kind {
	return []kind{
		{"requests", false, 1, 300 * time.Microsecond, 0.005},
		{"slowed", true, 1, 300 * time.Microsecond, 0.05},
		{"slowed much", true, 10, 300 * time.Microsecond, 0.05},
	}
}

// Estimates are unbiased, also for programs that are periodic or become expensive, and
// their intervals contain the truth as often as they promise.
func TestSimulation(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) { simulate(t, k) })
	}
}

// result sums up the estimates of a site.
type result struct{ error, square, truth, covered float64 }

func simulate(t *testing.T, k kind) {
	sites := program(k.calls)
	calls := inOrder(sites)
	results := make([]result, len(sites))
	roulettes, cut := 0, 0
	for seed := range uint64(runs) {
		r := record(k, len(sites), calls, seed)
		roulettes += r.roulettes
		spent := r.scheduler.Spent(r.now)
		cut += spent.Cut
		if n := r.windows.Summary().Windows; n < leastWindow || spent.Covered < length-length/50 {
			t.Fatalf("seed %d: %d windows, which stand for %v", seed, n, spent.Covered)
		}
		for i := range sites {
			e, x := r.sums[i].Estimate(&r.windows), &results[i]
			truth := sites[i].until(r.clock())
			if e.AtLeast {
				t.Errorf("seed %d: %s: only a lower bound", seed, sites[i].name)
			}
			d := e.Value - truth
			x.error, x.square, x.truth = x.error+d, x.square+d*d, x.truth+truth
			if e.Low <= truth && truth <= e.High {
				x.covered++
			}
		}
	}
	squares, covered := 0.0, 0.0
	for i, x := range results {
		mean := x.error / runs
		spread := math.Sqrt((x.square/runs - mean*mean) / (runs - 1))
		z, truth := mean/spread, x.truth/runs
		t.Logf("%-14s truth %6.0f, mean error %8.1f, z %5.2f, one run ± %4.1f %%, %.0f %% covered", sites[i].name, truth, mean, z, 100*spread*math.Sqrt(runs)/truth, 100*x.covered/runs)
		if math.Abs(mean) > mostZ*spread+k.bias*truth {
			t.Errorf("%s: the mean error of %d runs is %.0f, the truth %.0f: z = %.2f", sites[i].name, runs, mean, truth, z)
		}
		if x.covered < (leastCoveredSite-2*k.bias)*runs {
			t.Errorf("%s: %.0f of %d intervals contain the truth", sites[i].name, x.covered, runs)
		}
		z = math.Copysign(max(0, math.Abs(mean)-k.bias*truth)/spread, mean)
		squares += z * z
		covered += x.covered / runs / float64(len(sites))
	}
	if squares > mostSquare {
		t.Errorf("the squares of z sum up to %.1f", squares)
	}
	if covered < leastWithin || covered > mostWithin {
		t.Errorf("%.1f %% of all intervals contain the truth", 100*covered)
	}
	if roulettes < leastRoulettes {
		t.Errorf("%d windows became more expensive than planned", roulettes)
	}
	t.Logf("z² %.1f, %.1f %% covered, %d coins, %d cut", squares, 100*covered, roulettes, cut)
}

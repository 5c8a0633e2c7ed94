package estimate

import (
	"math/rand/v2"
	"testing"

	"rtrace-bpf/trace"
)

func TestBetween(t *testing.T) {
	at := func(value, low, high float64) Estimate { return Estimate{Value: value, Low: low, High: high} }
	for _, tt := range []struct {
		before, after Estimate
		text          string
		sure, more    bool
	}{
		{at(100, 70, 130), at(1000, 960, 1040), "+900 ± 50", true, true},
		{at(1000, 960, 1040), at(100, 70, 130), "-900 ± 50", true, false},
		{at(100, 60, 140), at(120, 90, 150), "+20 ± 50", false, false},
		{at(5, 5, 5), at(5, 5, 5), "0", false, false},
		{at(10, 10, 10), at(20, 15, 120), "+10 (+5.0 to +110)", true, true},
		{at(10, 10, 10), at(20, 9, 28), "+10 (-1.0 to +18)", false, false},
		{at(10, 5, 15), Estimate{Value: 90, Low: 40, AtLeast: true}, "at least +25", true, true},
		{Estimate{Value: 90, Low: 40, AtLeast: true}, at(10, 5, 15), "at most -25", true, false},
		{Estimate{Low: 1, AtLeast: true}, Estimate{Low: 3, AtLeast: true}, "not known", false, false},
	} {
		d := Between(tt.before, tt.after)
		if sure, more := d.Clear(); d.RateText() != tt.text || sure != tt.sure || more != tt.more {
			t.Errorf("from %+v to %+v: %s, clear %v, more %v; want %+v", tt.before, tt.after, d.RateText(), sure, more, tt)
		}
	}
}

// recorded returns the windows of a minute of calls at random, so many per second, and the estimate of
// them. It is the estimate of none if no window saw one.
func recorded(random *rand.Rand, perSecond float64) Estimate {
	const seconds, slots = 60, 20
	var w Windows
	var s Sum
	seen := false
	for second := range int64(seconds) {
		from := second*1e9 + random.Int64N(slots)*1e9/slots
		w.Observe(&trace.Record{Kind: trace.KindWindow, Time: from, Window: trace.Window{Weight: slots, Until: from + 1e9/slots, Stretch: 1e9}})
		for at := random.ExpFloat64() / perSecond; at < 1.0/slots; at += random.ExpFloat64() / perSecond {
			s.Add(&w, 1)
			seen = true
		}
		w.Observe(&trace.Record{Kind: trace.KindWindow, Time: from + 1e9/slots})
	}
	w.Observe(&trace.Record{Kind: trace.KindCost, Time: seconds * 1e9, Cost: trace.Cost{Covered: seconds * 1e9}})
	if !seen {
		return w.Unseen(1).Blocks
	}
	return s.Estimate(&w)
}

// Differences of simulated recordings contain the true one in 90 to 99 of 100 runs, also of groups
// that windows hardly see. The numbers are random from a fixed seed.
func TestDifferencesContainTheTruth(t *testing.T) {
	const runs = 300
	for _, rate := range [][2]float64{{100, 100}, {100, 120}, {50, 5}, {0.1, 10}, {0.2, 0.2}} {
		random := rand.New(rand.NewPCG(27, 4))
		inside := 0
		for range runs {
			d := Between(recorded(random, rate[0]), recorded(random, rate[1]))
			if truth := 60 * (rate[1] - rate[0]); d.Low <= truth && truth <= d.High && !d.AtLeast && !d.AtMost {
				inside++
			}
		}
		t.Logf("%v calls per second: %d of %d", rate, inside, runs)
		if inside < 90*runs/100 {
			t.Errorf("%v calls per second: only %d of %d differences contain the truth", rate, inside, runs)
		}
	}
}

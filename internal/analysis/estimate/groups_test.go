package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"rtrace-bpf/trace"
)

// siteWork is what a call site does in each second of the process.
type siteWork struct {
	size   uint64
	calls  func(second int) int    // of a second
	moment func(x float64) float64 // in the second, of a call at the share x of them
}

// Estimates per call site contain the true numbers of a process whose calls are all known: a steady
// site, one that grows, one with bursts and a rare one. The numbers are random from a fixed seed,
// so the test has the same result in each run. The values of the sites add up to the total.
func TestGroupsContainTheTruth(t *testing.T) {
	const seconds, slots, runs = 60, 20, 100
	even := func(x float64) float64 { return x }
	work := []siteWork{
		{100, func(int) int { return 400 }, even},
		{16, func(second int) int { return 100 + 10*second }, even},
		{4096, func(second int) int { return 300 * (second % 3 / 2) }, func(x float64) float64 { return 0.3 + 0.4*x }},
		{7, func(second int) int { return 2 + second%3 }, even},
	}
	inside, all := 0, 0
	mean := make([]float64, len(work))
	truth := make([]float64, len(work))
	for run := range runs {
		random := rand.New(rand.NewPCG(27, uint64(run)))
		var g Groups
		clear(truth)
		for second := range seconds {
			at := int64(second) * 1e9
			from := at + random.Int64N(slots)*1e9/slots
			until := from + 1e9/slots
			g.Record(&trace.Record{Kind: trace.KindWindow, Time: from, Window: trace.Window{Weight: slots, Until: until, Stretch: 1e9}})
			for n, w := range work {
				calls := w.calls(second)
				truth[n] += float64(calls)
				for i := range calls {
					moment := at + int64(1e9*w.moment((float64(i)+random.Float64())/float64(calls)))
					if moment >= from && moment < until {
						g.Add(n, w.size)
					}
				}
			}
			g.Record(&trace.Record{Kind: trace.KindWindow, Time: until})
		}
		g.Record(&trace.Record{Kind: trace.KindCost, Time: seconds * 1e9, Cost: trace.Cost{Covered: seconds * 1e9}})
		var blocks, bytes float64
		for _, r := range g.Rates() {
			blocks += r.Blocks * r.Stretch / 1e9
			bytes += r.Bytes * r.Stretch / 1e9
		}
		if whole := g.All(); len(g.Rates()) != seconds || math.Abs(blocks-whole.Blocks.Value) > 1e-6 || math.Abs(bytes-whole.Bytes.Value) > 1e-3 {
			t.Errorf("the rates of %d windows add up to %v blocks and %v bytes, not %+v", len(g.Rates()), blocks, bytes, whole)
		}
		blocks, bytes = 0, 0
		for n := range work {
			x := g.Of(n)
			all++
			if x.Blocks.Low <= truth[n] && truth[n] <= x.Blocks.High && !x.Blocks.AtLeast {
				inside++
			}
			blocks, bytes = blocks+x.Blocks.Value, bytes+x.Bytes.Value
			mean[n] += x.Blocks.Value / runs
			if want := x.Blocks.Value * float64(work[n].size); math.Abs(x.Bytes.Value-want) > 1e-9*want {
				t.Errorf("run %d, site %d: %v bytes, want %v", run, n, x.Bytes.Value, want)
			}
		}
		if total := g.All(); math.Abs(total.Blocks.Value-blocks) > 1e-9*blocks || math.Abs(total.Bytes.Value-bytes) > 1e-9*bytes {
			t.Errorf("run %d: %+v, the sites have %v blocks, %v bytes", run, total, blocks, bytes)
		}
	}
	if inside < all*93/100 {
		t.Errorf("%d of %d intervals contain the truth", inside, all)
	}
	for n := range work {
		if math.Abs(mean[n]/truth[n]-1) > 0.05 {
			t.Errorf("site %d: %v on average, the truth is %v", n, mean[n], truth[n])
		}
	}
	t.Logf("%d of %d intervals contain the truth", inside, all)
}

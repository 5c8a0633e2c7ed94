package main

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// sites is how many call sites the program sites has. Each allocates blocks of a size of its own,
// leastSite bytes and more.
const (
	sites     = 8
	leastSite = 1000
)

// siteRun is a recording of the program sites.
type siteRun struct {
	truth   [sites]float64 // blocks that each site has allocated, as the program counts
	callers [sites]uint64  // return addresses
	all     [sites]estimate.Estimate
	windows int
	covered float64 // share of the recording that windows stand for
}

// recordSites records the program with a seed. Its work is the same for each run with that seed.
func recordSites(t *testing.T, seed int, flags ...string) (r siteRun) {
	t.Helper()
	child := testutil.Spawn(t, testutil.Build(t, "sites", "-no-pie"), fmt.Sprint(seed), "3000", "3000")
	child.Ready()
	path := filepath.Join(t.TempDir(), "trace")
	recorder := start(t, child, append([]string{"-o", path, "--format", "jsonl"}, flags...)...)
	child.Go()
	child.Succeed()
	recorder.ends(cli.OK)
	if err := json.Unmarshal(child.Output(), &r.truth); err != nil {
		t.Fatal(err)
	}
	r.read(t, path)
	return r
}

// read estimates the blocks of each call site. Without windows, the estimates are exact.
func (r *siteRun) read(t *testing.T, path string) {
	t.Helper()
	in, err := decoder.OpenFile(path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var groups estimate.Groups
	var first, last int64 // from the first window to the end
	for {
		var rec trace.Record
		if err := in.ReadRecord(&rec); err != nil {
			break
		}
		groups.Record(&rec)
		if last = max(last, rec.Time); rec.Kind == trace.KindWindow && first == 0 {
			first = rec.Time
		}
		c := &rec.Call
		if rec.Kind != trace.KindCall || c.Size < leastSite || c.Size >= leastSite+sites {
			continue
		}
		site := int(c.Size - leastSite)
		groups.Add(site, 1)
		caller := c.Stack.Frames[0]
		if r.callers[site] != 0 && r.callers[site] != caller {
			t.Errorf("blocks of %d bytes are allocated at %#x and at %#x", c.Size, r.callers[site], caller)
		}
		r.callers[site] = caller
	}
	summary := groups.Summary()
	r.windows, r.covered = summary.Windows, min(1, float64(summary.Covered)/float64(last-first))
	for site, caller := range r.callers {
		if caller != 0 {
			r.all[site] = groups.Of(site).Blocks
		}
	}
}

// Estimates per call site of several recordings with a budget are as far from the program's own counts
// as their errors allow, and a recording of all calls of the same work has exactly these counts, at the
// same call sites. The program works at a constant rate, so the time for which no window stands has
// its share of the calls.
//
// The difference of all recordings together, in standard errors, has Student's distribution with about
// two thirds of the number of windows as degrees of freedom. The limit is the quantile that a site
// exceeds by chance once in a million tests, so that all sites together do less than once in 100,000.
func TestBudgetPerCallSite(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.Extra(t, "it records for ten seconds, so that there are enough windows")
	const seeds = 6
	var runs [seeds]siteRun
	var whole siteRun
	t.Run("recordings", func(t *testing.T) {
		for seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel() // they wait most of the time
				runs[seed] = recordSites(t, seed, "--budget", "50%")
			})
		}
		t.Run("all calls", func(t *testing.T) {
			t.Parallel()
			whole = recordSites(t, 0)
			for site, n := range whole.truth {
				if e := whole.all[site]; e.Value != n || e.Error != 0 {
					t.Errorf("site %d allocated %v blocks, the trace of all calls has %+v", site, n, e)
				}
			}
		})
	})
	if whole.truth != runs[0].truth {
		t.Errorf("with the same seed, %v and %v blocks", whole.truth, runs[0].truth)
	}
	runs[0].compare(t, &whole)
	for site := range sites {
		difference, variance, freedom := 0.0, 0.0, 0.0
		for seed := range runs {
			r := &runs[seed]
			e, n := r.all[site], r.truth[site]
			t.Logf("site %d, seed %d: %v blocks, estimated %+v from %d windows for %.3f of the time", site, seed, n, e, r.windows, r.covered)
			if e.AtLeast {
				if e.Low > n { // calls that were recorded
					t.Errorf("site %d, seed %d: %v blocks, at least %v estimated", site, seed, n, e.Low)
				}
				continue
			}
			difference += e.Value - n*r.covered
			variance += e.Error * e.Error
			freedom += 2 * float64(r.windows-1) / 3
		}
		if freedom == 0 {
			continue // on a machine that is too busy for enough windows, only bounds are known
		}
		const level = 1e-6
		p := student(difference/math.Sqrt(variance), freedom)
		t.Logf("site %d: wrong by %v with a standard error of %v and %v degrees of freedom: probability %v", site, difference, math.Sqrt(variance), freedom, p)
		switch {
		case variance == 0 && difference != 0:
			t.Errorf("site %d: estimates without an error are wrong by %v", site, difference)
		case variance > 0 && p < level:
			t.Errorf("site %d: wrong by more than chance explains", site)
		}
	}
}

// compare checks that a recording of all calls has the same call sites.
func (r *siteRun) compare(t *testing.T, whole *siteRun) {
	t.Helper()
	for site, caller := range whole.callers {
		if got := r.callers[site]; caller == 0 || got != 0 && got != caller {
			t.Errorf("site %d is at %#x with a budget, and at %#x with all calls", site, got, caller)
		}
	}
}

// student returns the probability that a variable with Student's distribution is further from 0 than x.
func student(x, freedom float64) float64 {
	// With x = sqrt(freedom) tan(a), the density of a is a power of its cosine.
	const steps = 100_000
	within := func(from, to float64) (sum float64) {
		for i := range steps {
			sum += math.Pow(math.Cos(from+(to-from)*(float64(i)+0.5)/steps), freedom-1)
		}
		return sum * (to - from) / steps
	}
	return within(math.Atan(math.Abs(x)/math.Sqrt(freedom)), math.Pi/2) / within(0, math.Pi/2)
}

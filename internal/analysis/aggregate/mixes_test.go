package aggregate_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/internal/testutil/mixes"
	"rtrace-bpf/trace"
)

// Thresholds were chosen with seeds below 1000. docs/suspects.md has the figures
// of seeds from 1,000,000 on.
var (
	firstSeed = flag.Uint64("mixes-seed", 0, "first seed of TestSuspects")
	seeds     = flag.Uint64("mixes", 200, "number of mixes of TestSuspects and TestLeaksTogether")
)

// fewSeeds is the number of mixes in the first tier of tests. They are the same each time, so
// the shares that the tests assert cannot change by chance; both kinds of mixes and all
// families are among 40.
const fewSeeds = 40

// mostSeeds returns how many mixes to run.
func mostSeeds(t *testing.T) uint64 {
	if !testutil.Sweep(t) {
		return min(fewSeeds, *seeds)
	}
	return *seeds
}

// outcome counts mixes.
type outcome struct {
	leaking, first, among int // with a leak: the leak is the first suspect, or one of them
	sound, quiet          int // without a leak: no suspect
}

func (o *outcome) add(m *mixes.Mix, suspects []uint64) {
	if m.Leak == nil {
		o.sound++
		if len(suspects) == 0 {
			o.quiet++
		}
		return
	}
	o.leaking++
	for i, site := range suspects {
		if site != m.Leak.Site {
			continue
		}
		o.among++
		if i == 0 {
			o.first++
		}
	}
}

// TestSuspects: in at least 95 of 100 programs that leak, the leak is the first
// suspect; in at least 95 of 100 that do not, there is no suspect.
func TestSuspects(t *testing.T) {
	var (
		all      outcome
		families = map[string]*outcome{}
		kinds    = map[string]*outcome{}
		rates    = map[string]*outcome{}
		times    = map[string]*outcome{}
	)
	count := func(of map[string]*outcome, key string, m *mixes.Mix, suspects []uint64) {
		if of[key] == nil {
			of[key] = new(outcome)
		}
		of[key].add(m, suspects)
	}
	last := *firstSeed + mostSeeds(t)
	for seed := *firstSeed; seed < last; seed++ {
		m, records := mixes.New(seed)
		e := aggregate.New()
		records(e.Add)
		var suspects []uint64
		for _, s := range e.Suspects(aggregate.Memory) {
			var r trace.Record
			e.Place(s.Site, &r)
			suspects = append(suspects, r.Call.Stack.Frames[0])
		}
		all.add(m, suspects)
		count(families, m.Family, m, suspects)
		count(times, timeClass(m.Duration), m, suspects)
		if m.Leak != nil {
			count(kinds, m.Leak.Kind, m, suspects)
			count(rates, rateClass(m.Leak.Share), m, suspects)
			if len(suspects) != 1 || suspects[0] != m.Leak.Site {
				t.Logf("seed %d, %s, attached %v, %v, %+v: suspects %#x", seed, m.Family, m.Attached, m.Duration, *m.Leak, suspects)
			}
		} else if len(suspects) > 0 {
			t.Logf("seed %d, %s, attached %v, %v, no leak: suspects %#x", seed, m.Family, m.Attached, m.Duration, suspects)
		}
	}
	for _, x := range []struct {
		title string
		of    map[string]*outcome
		keys  []string
	}{
		{"family", families, mixes.Families},
		{"observed", times, []string{"1 to 5 min", "5 to 15 min", "15 to 60 min"}},
		{"leak", kinds, []string{"steady", "partial", "late", "clumps"}},
		{"share of the busy allocator", rates, []string{"0.1 to 0.3 %", "0.3 to 1 %", "1 to 10 %"}},
	} {
		lines := []string{fmt.Sprintf("| %s | with a leak | leak is first | leak is a suspect | without | no suspect |", x.title), "|---|---|---|---|---|---|"}
		for _, key := range x.keys {
			if o := x.of[key]; o != nil {
				lines = append(lines, fmt.Sprintf("| %s | %d | %d | %d | %d | %d |", key, o.leaking, o.first, o.among, o.sound, o.quiet))
			}
		}
		t.Log("\n" + strings.Join(lines, "\n"))
	}
	t.Logf("the leak is first in %d of %d, no suspect in %d of %d", all.first, all.leaking, all.quiet, all.sound)
	if 100*all.first < 95*all.leaking || 100*all.quiet < 95*all.sound || all.leaking == 0 || all.sound == 0 {
		t.Errorf("less than 95 %%")
	}
}

func timeClass(d time.Duration) string {
	switch {
	case d < 5*time.Minute:
		return "1 to 5 min"
	case d < 15*time.Minute:
		return "5 to 15 min"
	}
	return "15 to 60 min"
}

func rateClass(share float64) string {
	switch {
	case share < 0.003:
		return "0.1 to 0.3 %"
	case share < 0.01:
		return "0.3 to 1 %"
	}
	return "1 to 10 %"
}

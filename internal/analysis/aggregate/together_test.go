package aggregate_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/testutil/mixes"
	"rtrace-bpf/trace"
)

// togetherOutcome counts mixes of programs that leak at several call sites.
type togetherOutcome struct {
	all   int
	first int // the first suspect is the fastest leak in bytes, or a part of it
	whole int // and has all its call sites
	exact int // each leak is one suspect
	wrong int // call sites of different leaks are one suspect
	false int // a suspect is no leak
}

// add adds a mix whose suspects have these call sites.
func (o *togetherOutcome) add(m *mixes.Together, suspects [][]uint64) {
	o.all++
	fastest := slices.MaxFunc(m.Operations, func(a, b mixes.Operation) int { return cmp.Compare(a.Rate, b.Rate) })
	leak := map[uint64]int{} // 1 + the number of the leak
	for i, op := range m.Operations {
		for _, s := range op.Sites {
			leak[s] = i + 1
		}
	}
	same := func(a []uint64, b []uint64) bool {
		return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
	}
	if len(suspects) > 0 && slices.Contains(fastest.Sites, suspects[0][0]) {
		o.first++
		if same(suspects[0], fastest.Sites) {
			o.whole++
		}
	}
	exact := len(suspects) == len(m.Operations)
	wrong, none := false, false
	for _, s := range suspects {
		for _, site := range s {
			wrong = wrong || leak[site] != leak[s[0]]
			none = none || leak[site] == 0
		}
		exact = exact && leak[s[0]] > 0 && same(s, m.Operations[leak[s[0]]-1].Sites)
	}
	for of, count := range map[*int]bool{&o.exact: exact, &o.wrong: wrong, &o.false: none} {
		if count {
			*of++
		}
	}
}

// sitesOf returns the innermost frames of a suspect.
func sitesOf(e *aggregate.Engine, s *aggregate.Suspect) (sites []uint64) {
	for _, n := range s.Sites() {
		var r trace.Record
		e.Place(n, &r)
		sites = append(sites, r.Call.Stack.Frames[0])
	}
	return sites
}

// togetherOf runs mixes and logs a table of their kinds.
func togetherOf(t *testing.T, first, seeds uint64) (all togetherOutcome, kinds map[string]*togetherOutcome) {
	t.Helper()
	kinds = map[string]*togetherOutcome{}
	for seed := first; seed < first+seeds; seed++ {
		m, records := mixes.NewOperations(seed)
		e := aggregate.New()
		records(e.Add)
		var suspects [][]uint64
		for _, s := range e.Suspects(aggregate.Memory) {
			suspects = append(suspects, sitesOf(e, &s))
		}
		if kinds[m.Kind] == nil {
			kinds[m.Kind] = new(togetherOutcome)
		}
		before := all
		all.add(m, suspects)
		kinds[m.Kind].add(m, suspects)
		if testing.Verbose() && (all.exact == before.exact || all.wrong > before.wrong) {
			t.Logf("seed %d, %s, %s, attached %v, %v: %+v: suspects %#x", seed, m.Kind, m.Family, m.Attached, m.Duration, m.Operations, suspects)
		}
	}
	lines := []string{"| kind | programs | first | whole | exact | wrong | no leak |", "|---|---|---|---|---|---|---|"}
	for _, kind := range mixes.Kinds {
		if o := kinds[kind]; o != nil {
			lines = append(lines, fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d |", kind, o.all, o.first, o.whole, o.exact, o.wrong, o.false))
		}
	}
	t.Log("\n" + strings.Join(lines, "\n"))
	return all, kinds
}

// TestLeaksTogether: in at least 95 of 100 programs that leak at several call sites, the first
// suspect is the fastest leak with all its call sites, and each leak is one suspect. Different
// leaks are one suspect in at most 1 of 100.
func TestLeaksTogether(t *testing.T) {
	all, _ := togetherOf(t, *firstSeed, mostSeeds(t))
	if 100*all.whole < 95*all.all || 100*all.exact < 95*all.all || 100*all.wrong > all.all || all.all == 0 {
		t.Errorf("%+v", all)
	}
}

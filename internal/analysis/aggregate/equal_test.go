package aggregate_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/analysis/leak"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// place identifies a call site by text.
func place(pid int32, c *trace.Call) string {
	return fmt.Sprintf("%d %#v %#v", pid, c.Stack, c.Caller)
}

// of is the figures of the call sites with the same place and type of resource.
type of struct {
	Usage     usage.Usage
	Oldest    int64 // -1 if there is none
	Sites     int
	Lifetimes uint64
}

// totals is the figures of a type of resource.
type totals struct {
	Usage     usage.Usage
	Calls     usage.Calls
	Freed     live.Amount
	Replaced  live.Amount
	Unmatched uint64
	Usual     int64
	Young     uint64
}

// result is what the engine and the other analyses have in common.
type result struct {
	Totals map[string]totals
	Sites  map[string]of // by type and place
}

// reference computes the figures with the analyses of whole traces.
type reference struct {
	traces  int
	byID    map[uint32]string
	counter map[string]*usage.Counter
	finder  map[string]*leak.Finder
	places  map[string]map[string]int
	digest  *digest.Digest
	first   int64
	last    int64
}

func newReference() *reference {
	return &reference{
		byID: map[uint32]string{}, counter: map[string]*usage.Counter{}, finder: map[string]*leak.Finder{},
		places: map[string]map[string]int{}, digest: digest.New(digest.Options{}),
	}
}

func (x *reference) add(r *trace.Record) {
	own := *r
	r = &own
	if r.Kind == trace.KindHeader {
		x.traces++
	}
	if r.PID == 0 && x.traces > 1 {
		r.PID = 1 - int32(x.traces)
	}
	x.digest.Add(r)
	switch r.Kind {
	case trace.KindResource:
		x.byID[r.Resource.ID] = r.Resource.Type
		x.of(r.Resource.Type)
		for name := range x.counter { // a counter must know that another one's ids are not its own
			x.counter[name].Add(r)
			x.finder[name].Add(r)
		}
	case trace.KindCall:
		if r.Time != 0 && x.first == 0 {
			x.first = r.Time
		}
		x.last = max(x.last, r.Time)
		r.Time = x.last // some files are sorted by size; in the engine times do not go back
		name, ok := x.byID[r.Call.Resource]
		if !ok {
			name = "memory"
		}
		c, f := x.of(name)
		c.Add(r)
		f.Add(r)
	default:
		for name := range x.counter {
			x.counter[name].Add(r)
			x.finder[name].Add(r)
		}
	}
}

func (x *reference) of(name string) (*usage.Counter, *leak.Finder) {
	if x.counter[name] == nil {
		places := map[string]int{}
		x.places[name] = places
		x.counter[name] = usage.New(func(r *trace.Record) int {
			key := place(r.PID, &r.Call)
			if _, ok := places[key]; !ok {
				places[key] = len(places)
			}
			return places[key]
		})
		x.finder[name] = leak.NewStill()
	}
	return x.counter[name], x.finder[name]
}

func (x *reference) result() result {
	out := result{Totals: map[string]totals{}, Sites: map[string]of{}}
	byType := map[string]*digest.Resource{}
	for _, r := range x.digest.Finish().Resources {
		byType[r.Type] = r
	}
	for name, c := range x.counter {
		t := totals{Usage: c.Total(), Calls: c.Calls(), Replaced: c.Replaced(), Unmatched: c.Unmatched()}
		if t.Calls.All == 0 {
			continue
		}
		if d := byType[name]; d != nil {
			t.Freed = d.Freed
		}
		usual := x.finder[name].Lifetimes().Usual()
		t.Usual = int64(usual)
		for key, n := range x.places[name] {
			out.Sites[name+" "+key] = of{Usage: c.Of(n), Oldest: -1}
		}
		var r trace.Record
		leaks := x.finder[name].Leaks()
		for i := range leaks.Len() {
			leaks.Record(i, &r)
			if leaks.Unknown(i) || r.Call.Op != trace.OpAlloc {
				continue
			}
			key := name + " " + place(r.PID, &r.Call)
			s := out.Sites[key]
			at := max(0, r.Time-x.first)
			if s.Oldest < 0 || at < s.Oldest {
				s.Oldest = at
			}
			if x.last-x.first-at < int64(usual) {
				t.Young++
			}
			out.Sites[key] = s
		}
		out.Totals[name] = t
	}
	return out
}

// resultOf returns the same figures of an engine. Sites that are apart because of
// an exec or of mappings are added up; their peaks are at different times.
func resultOf(e *aggregate.Engine) result {
	out := result{Totals: map[string]totals{}, Sites: map[string]of{}}
	s := e.State()
	for _, r := range s.Resources {
		if r.Calls.All > 0 {
			out.Totals[r.Type] = totals{
				Usage: r.Total, Calls: r.Calls, Freed: r.Freed, Replaced: r.Replaced, Unmatched: r.Unmatched,
				Usual: int64(r.Doubt.Usual), Young: r.Doubt.Young.Young,
			}
		}
	}
	for i := range s.Sites {
		x := &s.Sites[i]
		var r trace.Record
		e.Place(i, &r)
		key := s.Resources[x.Resource].Type + " " + place(x.PID, &r.Call)
		sum, ok := out.Sites[key]
		if !ok {
			sum.Oldest = -1
		}
		sum.Sites++
		sum.Usage.Add(&x.Usage)
		if sum.Oldest < 0 || x.Oldest >= 0 && x.Oldest < sum.Oldest {
			sum.Oldest = x.Oldest
		}
		for _, l := range e.Detail(i).Lifetimes {
			sum.Lifetimes += l.Blocks
		}
		out.Sites[key] = sum
	}
	return out
}

// compare compares an engine with the other analyses.
func compare(e *aggregate.Engine, want result) string {
	got := resultOf(e)
	for key, s := range got.Sites {
		w := want.Sites[key]
		if s.Sites > 1 {
			s.Usage.Peak = w.Usage.Peak
		}
		s.Sites, s.Lifetimes = 0, 0
		got.Sites[key] = s
	}
	for name, t := range got.Totals {
		if t.Usual == 0 && t.Young == 0 { // the engine has them only where they allow a statement
			w := want.Totals[name]
			w.Usual, w.Young = 0, 0
			want.Totals[name] = w
		}
	}
	return cmp.Diff(want, got)
}

// TestEqual compares with the analyses of whole traces, digit for digit.
func TestEqual(t *testing.T) {
	const corpus = "../../../testdata/corpus"
	compared, calls, freed := 0, uint64(0), uint64(0)
	err := filepath.WalkDir(corpus, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		in, err := decoder.OpenFile(path, decoder.Options{})
		if err != nil {
			return nil // no trace
		}
		defer func() { _ = in.Close() }()
		e, refreshed, ref := aggregate.New(), aggregate.New(), newReference()
		var r trace.Record
		for in.ReadRecord(&r) == nil { // some are cut or damaged; what comes before counts
			ref.add(&r)
			e.Add(&r)
			refreshed.Add(&r)
			refreshed.Interval(r.Time)
			if r.Kind == trace.KindCall && r.Call.Seq%64 == 0 {
				refreshed.State()
			}
		}
		want := ref.result()
		if d := compare(e, want); d != "" {
			t.Errorf("%s (-want +got):\n%s", path, d)
		}
		if d := cmp.Diff(resultOf(e), resultOf(refreshed)); d != "" {
			t.Errorf("%s: with refreshes (-without +with):\n%s", path, d)
		}
		compared++
		for _, x := range want.Totals {
			calls += x.Calls.All
			freed += x.Freed.Blocks
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d traces, %d calls, %d blocks freed", compared, calls, freed)
	if compared < 50 || calls < 5000 || freed < 1000 {
		t.Errorf("only %d traces with %d calls and %d frees were compared", compared, calls, freed)
	}
}

// TestEqualAtRandom does the same with random calls, gaps, execs and mappings.
func TestEqualAtRandom(t *testing.T) {
	for seed := range uint64(30) {
		e, refreshed, ref := aggregate.New(), aggregate.New(), newReference()
		var allocated, freed live.Amount
		random(seed, func(r *trace.Record) {
			ref.add(r)
			e.Add(r)
			refreshed.Add(r)
			if seed%2 == 0 {
				refreshed.Interval(r.Time)
				for _, s := range refreshed.State().Sites {
					allocated.Add(s.Change.Allocated)
					freed.Add(s.Change.Freed)
				}
			}
		})
		want := ref.result()
		if d := compare(e, want); d != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, d)
		}
		if d := cmp.Diff(resultOf(e), resultOf(refreshed)); d != "" {
			t.Fatalf("seed %d: with refreshes (-without +with):\n%s", seed, d)
		}
		if seed%2 != 0 {
			continue
		}
		var all, gone live.Amount
		for _, x := range want.Totals {
			all.Add(x.Usage.Allocated)
			gone.Add(x.Freed)
		}
		if allocated != all || freed != gone {
			t.Fatalf("seed %d: the intervals add up to %v and %v, want %v and %v", seed, allocated, freed, all, gone)
		}
	}
}

// random makes a trace of two processes with a few threads and stacks.
func random(seed uint64, add func(*trace.Record)) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	add(&trace.Record{Kind: trace.KindHeader, Header: trace.Header{Clock: trace.ClockMonotonic}})
	for id, name := range []string{"memory", "fd", "segment"} {
		add(&trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: uint32(id + 1), Type: name, RefCount: name == "segment"}})
	}
	now := int64(1e9)
	for range 3000 {
		now += rnd.Int64N(1000)
		r := &trace.Record{Kind: trace.KindCall, Time: now, PID: 1 + rnd.Int32N(2), TID: 1 + rnd.Int32N(3)}
		r.Call = trace.Call{
			Op: trace.OpAlloc, Resource: 1 + uint32(rnd.IntN(3)), ID: 1 + rnd.Uint64N(40), Size: rnd.Uint64N(100),
			Stack: trace.Stack{Frames: []uint64{0x1000 + 0x10*rnd.Uint64N(6), 0x5000}, End: trace.StackComplete},
		}
		switch rnd.IntN(16) {
		case 0, 1, 2, 3, 4:
			r.Call = trace.Call{Op: trace.OpFree, Resource: r.Call.Resource, ID: r.Call.ID}
		case 5, 6:
			r.Call.Op, r.Call.OldID = trace.OpMove, rnd.Uint64N(40)
		case 7:
			switch rnd.IntN(60) {
			case 0:
				r.Kind = trace.KindExec
			case 1:
				r.Kind, r.Lost = trace.KindLost, trace.Lost{Count: 1, Reason: trace.LostPaused}
			case 2:
				r.Kind, r.Lost = trace.KindLost, trace.Lost{Count: 2, Reason: "ring full"}
			case 3, 4:
				start := 0x1000 + 0x10*rnd.Uint64N(6)
				r.Kind, r.Mapping = trace.KindMapping, trace.Mapping{Start: start, End: start + 0x20, Base: start, Path: fmt.Sprint("/lib", rnd.IntN(2))}
			}
		}
		add(r)
	}
}

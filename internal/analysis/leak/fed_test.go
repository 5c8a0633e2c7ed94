package leak_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/analysis/leak"
	"rtrace-bpf/trace"
)

// finders are two Finders that take the calls of memory: one has its own live
// blocks, the other those of an engine.
type finders struct {
	still, fed *leak.Finder
	types      map[uint32]string
	traces     int32
}

func newFinders() *finders {
	return &finders{leak.NewStill(), leak.NewFed(aggregate.New(), func() string { return aggregate.Memory }), map[uint32]string{}, 0}
}

// add passes on calls of memory, as commands do, and other records.
func (x *finders) add(r *trace.Record) {
	switch r.Kind {
	case trace.KindHeader:
		x.traces++
	case trace.KindResource:
		x.types[r.Resource.ID] = r.Resource.Type
	case trace.KindCall:
		if name, known := x.types[r.Call.Resource]; known && name != aggregate.Memory {
			return
		}
	}
	if r.PID == 0 && x.traces > 1 {
		r.PID = 1 - x.traces
	}
	x.still.Add(r)
	x.fed.Add(r)
}

// kept is all that a Finder has found.
type kept struct {
	Calls              []string
	Live               int
	Unmatched          uint64
	Replaced, Lost     uint64
	Usual              int64
	Ordinals, Unknowns []uint64
}

func keptBy(f *leak.Finder) (k kept) {
	k.Live, k.Unmatched, k.Usual = f.Live(), f.Unmatched(), int64(f.Lifetimes().Usual())
	k.Replaced, k.Lost = f.Replaced()
	leaks := f.Leaks()
	var r trace.Record
	for i := range leaks.Len() {
		leaks.Record(i, &r)
		k.Calls = append(k.Calls, fmt.Sprintf("%d %d %d %d %+v", r.Time, r.PID, r.TID, r.CPU, r.Call))
		k.Ordinals = append(k.Ordinals, leaks.Ordinal(i))
		if leaks.Unknown(i) {
			k.Unknowns = append(k.Unknowns, leaks.Ordinal(i))
		}
	}
	return k
}

// TestFedEqual: with the live blocks of an engine the same calls are kept.
func TestFedEqual(t *testing.T) {
	compared, calls := 0, 0
	compare := func(name string, x *finders) {
		t.Helper()
		want := keptBy(x.still)
		if d := cmp.Diff(want, keptBy(x.fed)); d != "" {
			t.Errorf("%s (-own table +engine):\n%s", name, d)
		}
		compared++
		calls += len(want.Calls)
	}
	err := filepath.WalkDir("../../../testdata/corpus", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		in, err := decoder.OpenFile(path, decoder.Options{})
		if err != nil {
			return nil // no trace
		}
		defer func() { _ = in.Close() }()
		x := newFinders()
		var r trace.Record
		for in.ReadRecord(&r) == nil { // some are cut or damaged; what comes before counts
			x.add(&r)
		}
		compare(path, x)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		x := newFinders()
		random(seed, x.add)
		compare(fmt.Sprint("seed ", seed), x)
	}
	if compared < 50 || calls < 1000 {
		t.Errorf("only %d traces with %d live blocks were compared", compared, calls)
	}
}

// random makes a trace of two processes with gaps, execs, samples, counted references and names.
func random(seed uint64, add func(*trace.Record)) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	add(&trace.Record{Kind: trace.KindHeader, Header: trace.Header{Clock: trace.ClockMonotonic}})
	for id := range uint32(3) {
		add(&trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: id + 1, Type: aggregate.Memory, RefCount: id == 1, Sampled: id == 2}})
	}
	now := int64(1e9)
	for n := range uint64(3000) {
		now += rnd.Int64N(1000)
		r := &trace.Record{Kind: trace.KindCall, Time: now, PID: 1 + rnd.Int32N(2), TID: rnd.Int32N(3), CPU: rnd.Int32N(2)}
		r.Call = trace.Call{
			Seq: n, Op: trace.OpAlloc, Resource: 1 + uint32(rnd.IntN(3)), ID: 1 + rnd.Uint64N(60), Size: rnd.Uint64N(100),
			Function: []string{"malloc", "calloc"}[rnd.IntN(2)], Context: uint32(rnd.IntN(3)), Index: rnd.Uint64N(2),
			Stack: trace.Stack{Frames: []uint64{0x1000 + 0x10*rnd.Uint64N(6), 0x5000}, End: trace.StackComplete},
		}
		if rnd.IntN(4) == 0 {
			r.Call.Args = []trace.Arg{{Name: "size", Value: fmt.Sprint(n)}}
		}
		switch rnd.IntN(16) {
		case 0, 1, 2, 3, 4:
			r.Call = trace.Call{Seq: n, Op: trace.OpFree, Resource: r.Call.Resource, ID: r.Call.ID}
		case 5, 6:
			r.Call.Op, r.Call.OldID = trace.OpMove, rnd.Uint64N(60)
		case 7:
			switch rnd.IntN(40) {
			case 0:
				r.Kind = trace.KindExec
			case 1:
				r.Kind, r.Lost = trace.KindLost, trace.Lost{Count: 1, Reason: trace.LostPaused}
			}
		}
		add(r)
	}
}

package heapmap

import (
	"math/rand/v2"
	"testing"
)

// Ranges agree with a model of each byte. Merged ranges cover at least as much
// and begin no later.
func TestSpansAgainstModel(t *testing.T) {
	const space = 3000
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 4))
		var model [space + 200]uint64
		exact, thinned := newSpans(1<<20), newSpans(20)
		for n := range 1 + rng.IntN(400) {
			start, size, since := 1+rng.Uint64N(space), rng.Uint64N(100), 1+rng.Uint64N(20)
			exact.add(start, size, since)
			thinned.add(start, size, since)
			for i := start; i < start+size; i++ {
				if model[i] == 0 || since < model[i] {
					model[i] = since
				}
			}
			if n%50 == 0 {
				exact.settle()
				thinned.settle()
			}
		}
		compareSpans(t, seed, exact.list(), func(i, since uint64) bool { return model[i] == since }, uint64(len(model)))
		compareSpans(t, seed, thinned.list(), func(i, since uint64) bool {
			return model[i] == 0 || since != 0 && since <= model[i]
		}, uint64(len(model)))
		if len(thinned.list()) > 20 {
			t.Errorf("seed %d: %d ranges", seed, len(thinned.list()))
		}
	}
}

func compareSpans(t *testing.T, seed uint64, list []Span, ok func(i, since uint64) bool, n uint64) {
	t.Helper()
	for i := range list {
		if list[i].Last < list[i].Start || i > 0 && list[i].Start <= list[i-1].Last {
			t.Fatalf("seed %d: out of order at %d: %v", seed, i, list)
		}
	}
	for i := range n {
		var since uint64
		for _, s := range list {
			if s.Start <= i && i <= s.Last {
				since = s.Since
			}
		}
		if !ok(i, since) {
			t.Fatalf("seed %d: byte %d is set since %d", seed, i, since)
		}
	}
}

// The ends of the address space, and ranges that would reach beyond.
func TestSpansAtTheEnds(t *testing.T) {
	s := newSpans(100)
	s.add(^uint64(0)-9, 1<<20, 5)
	s.add(^uint64(0)-19, 15, 3)
	s.add(0, 10, 2)
	s.add(0, 0, 1)
	want := []Span{{0, 9, 2}, {^uint64(0) - 19, ^uint64(0) - 5, 3}, {^uint64(0) - 4, ^uint64(0), 5}}
	got := s.list()
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

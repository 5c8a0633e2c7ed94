package aggregate

import (
	"math/bits"

	"rtrace-bpf/internal/live"
)

// steps holds a value for each power of two, of which only the range in use
// takes memory. The zero steps is empty.
type steps[T any] struct {
	from uint8
	all  []T
}

// at returns the value of a step. It is valid until the next call.
func (s *steps[T]) at(step uint8) *T {
	if len(s.all) == 0 {
		s.from = step
	}
	if step < s.from {
		wider := make([]T, int(s.from-step)+len(s.all))
		copy(wider[s.from-step:], s.all)
		s.from, s.all = step, wider
	}
	for int(step-s.from) >= len(s.all) {
		var none T
		s.all = append(s.all, none)
	}
	return &s.all[step-s.from]
}

// step returns the step that contains a number: 0 for 0, and n for the numbers
// from 1<<(n-1) on.
func step(n uint64) uint8 { return uint8(bits.Len64(n)) }

// lifetimeStep returns the step of a time in nanoseconds.
func lifetimeStep(ns int64) uint8 { return step(uint64(max(0, ns))) }

// bounds returns the least and the largest number in a step.
func bounds(step uint8) (from, to uint64) {
	if step == 0 {
		return 0, 0
	}
	return 1 << (step - 1), 1<<(step-1) - 1 + 1<<(step-1)
}

// Size is the blocks of From to To bytes, both included.
type Size struct {
	From, To  uint64
	Allocated live.Amount
	Live      live.Amount // including unknown ones
}

// Lifetime is the number of freed blocks that lived for From to To nanoseconds,
// both included. Blocks whose fate was unknown do not count.
type Lifetime struct {
	From, To uint64
	Blocks   uint64
}

// size is a Size in progress.
type size struct {
	allocated, live live.Amount
}

func sizesOf(s *steps[size]) []Size {
	out := make([]Size, 0, len(s.all))
	for i, v := range s.all {
		x := Size{Allocated: v.allocated, Live: v.live}
		x.From, x.To = bounds(s.from + uint8(i))
		out = append(out, x)
	}
	return out
}

func lifetimesOf(s *steps[uint64]) []Lifetime {
	out := make([]Lifetime, 0, len(s.all))
	for i, n := range s.all {
		x := Lifetime{Blocks: n}
		x.From, x.To = bounds(s.from + uint8(i))
		out = append(out, x)
	}
	return out
}

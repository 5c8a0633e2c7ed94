package heapmap

import (
	"cmp"
	"slices"
)

// Span is a range of the address space, Start to Last both included, whose
// state holds from an event on.
type Span struct {
	Start, Last uint64
	Since       uint64 // event
}

// spans is a set of ranges. Where they overlap, the earliest event wins. The
// set is bounded: when there are too many ranges, it merges neighbours across
// small gaps.
type spans struct {
	all     []Span // in order, not overlapping
	pending []Span
	limit   int
	slack   uint64 // gaps up to this size are merged
}

func newSpans(limit int) spans { return spans{limit: limit} }

func (s *spans) add(start, size, since uint64) {
	if size == 0 {
		return
	}
	last := start + size - 1
	if last < start {
		last = ^uint64(0)
	}
	if n := len(s.pending); n > 0 { // heaps grow at their end
		if p := &s.pending[n-1]; p.Since == since && p.Last+1 == start && start != 0 {
			p.Last = last
			return
		}
	}
	s.pending = append(s.pending, Span{start, last, since})
	if len(s.pending) >= max(1024, len(s.all)) {
		s.settle()
	}
}

// list returns the ranges in order, without overlaps.
func (s *spans) list() []Span {
	s.settle()
	return s.all
}

// settle merges the pending ranges.
func (s *spans) settle() {
	if len(s.pending) == 0 {
		return
	}
	s.all = sweep(append(s.all, s.pending...))
	s.pending = s.pending[:0]
	for len(s.all) > s.limit {
		s.slack = max(16, 2*s.slack)
		s.all = thin(s.all, s.slack)
	}
}

// sweep splits and merges overlapping ranges so that none overlap.
func sweep(in []Span) []Span {
	slices.SortFunc(in, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	var (
		out  []Span
		open earliest // ranges that contain at or begin there
		next int
	)
	put := func(start, last, since uint64) {
		if n := len(out); n > 0 && out[n-1].Since == since && out[n-1].Last+1 == start {
			out[n-1].Last = last
			return
		}
		out = append(out, Span{start, last, since})
	}
	var at uint64
	for next < len(in) || len(open) > 0 {
		if len(open) == 0 {
			at = in[next].Start
		}
		for next < len(in) && in[next].Start <= at {
			open.push(in[next])
			next++
		}
		for len(open) > 0 && open[0].Last < at {
			open.pop()
		}
		if len(open) == 0 {
			continue
		}
		// The earliest range counts up to its end or the beginning of another.
		last := open[0].Last
		if next < len(in) && in[next].Start <= last {
			last = in[next].Start - 1
		}
		put(at, last, open[0].Since)
		if last == ^uint64(0) {
			break
		}
		at = last + 1
		for len(open) > 0 && open[0].Last < at {
			open.pop()
		}
	}
	return out
}

// thin merges neighbours that are at most slack bytes apart if one of them is
// at most slack bytes long.
func thin(in []Span, slack uint64) []Span {
	out := in[:1]
	for _, s := range in[1:] {
		p := &out[len(out)-1]
		if s.Start-p.Last-1 <= slack && (s.Last-s.Start < slack || p.Last-p.Start < slack) {
			p.Last, p.Since = s.Last, min(p.Since, s.Since)
			continue
		}
		out = append(out, s)
	}
	return out
}

// earliest is a min-heap of ranges by their events.
type earliest []Span

func (h *earliest) push(s Span) {
	*h = append(*h, s)
	all := *h
	for i := len(all) - 1; i > 0; {
		up := (i - 1) / 2
		if all[up].Since <= all[i].Since {
			break
		}
		all[up], all[i] = all[i], all[up]
		i = up
	}
}

func (h *earliest) pop() {
	all := *h
	n := len(all) - 1
	all[0] = all[n]
	all = all[:n]
	*h = all
	for i := 0; ; {
		down := 2*i + 1
		if down >= n {
			break
		}
		if down+1 < n && all[down+1].Since < all[down].Since {
			down++
		}
		if all[i].Since <= all[down].Since {
			break
		}
		all[i], all[down] = all[down], all[i]
		i = down
	}
}

package topview

import (
	"slices"
	"strings"

	"rtrace-bpf/internal/live"
)

// By is what the calls of a row have in common.
type By string

// The ways to group calls.
const (
	BySite     By = "site" // the whole stack
	ByFunction By = "function"
	ByFile     By = "file"
	ByLibrary  By = "library"
	ByThread   By = "thread"
	BySize     By = "size"
)

// Groupings returns all ways to group calls.
func Groupings() []string {
	return []string{string(BySite), string(ByFunction), string(ByFile), string(ByLibrary), string(ByThread), string(BySize)}
}

// fromDetails reports whether rows are made of the details of call sites, and have no places.
func (b By) fromDetails() bool { return b == ByThread || b == BySize }

// Order is the figure by which rows are sorted, the largest first.
type Order string

// The orders of rows.
const (
	OrderLive   Order = "live"   // live bytes
	OrderGrowth Order = "growth" // change of live bytes per second
	OrderRate   Order = "rate"   // allocated bytes per second
	OrderCount  Order = "count"  // live blocks
)

// Orders returns all orders of rows.
func Orders() []string {
	return []string{string(OrderLive), string(OrderGrowth), string(OrderRate), string(OrderCount)}
}

// after returns the word that follows another one in a list, the first one after the last.
func after(words []string, word string) string {
	return words[(slices.Index(words, word)+1)%len(words)]
}

// query selects which rows a view has, and in which order.
type query struct {
	by     By
	order  Order
	filter string
	mark   *mark // nil for none
}

// mark holds the figures of all items at a moment.
type mark struct {
	at *Snapshot
	of map[key]live.Amount // live
	// allocated is what was allocated before the mark.
	allocated map[key]live.Amount
}

// markOf returns a mark at a snapshot.
func markOf(s *Snapshot, from Source) *mark {
	k := &mark{at: s, of: make(map[key]live.Amount), allocated: make(map[key]live.Amount)}
	for _, by := range []By{BySite, ByThread, BySize} {
		for x := range items(s, by, from) {
			k.of[x.key], k.allocated[x.key] = x.live, x.allocated
		}
	}
	return k
}

// change returns the change of the live blocks of an item since the mark.
func (k *mark) change(x *item) Change {
	base := k.of[x.key]
	return Change{int64(x.live.Blocks - base.Blocks), int64(x.live.Bytes - base.Bytes)}
}

// judges reports whether rows have verdicts. A verdict is on a whole stack since the start of the
// recording, so rows of something else and changes since a mark have none.
func (q *query) judges() bool { return q.by == BySite && q.mark == nil }

// hides reports whether the filter leaves out a row.
func (q *query) hides(text string, p *Place) bool {
	if q.filter == "" {
		return false
	}
	want := strings.ToLower(q.filter)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), want) }
	return text != naming && !has(text) && !has(p.File) && !has(p.Library) && !slices.ContainsFunc(p.Stack, has)
}

// unchanged reports whether nothing has happened in a row since the mark, or at all without one.
func (q *query) unchanged(r *Row) bool {
	if q.mark == nil {
		return r.Allocated.Blocks == 0
	}
	if r.Since != (Change{}) {
		return false
	}
	var base live.Amount
	for k := range r.keys() {
		base.Add(q.mark.allocated[k])
	}
	return r.Allocated == base
}

// figure returns the figure of a row by which it is sorted.
func (q *query) figure(r *Row) float64 {
	switch q.order {
	case OrderGrowth:
		return r.Growth
	case OrderRate:
		return r.Rate
	case OrderCount:
		if q.mark != nil {
			return float64(r.Since.Blocks)
		}
		return float64(r.Live.Blocks)
	}
	if q.mark != nil {
		return float64(r.Since.Bytes)
	}
	return float64(r.Live.Bytes)
}

package record

import (
	"testing"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
)

// The tracer counts the same blocks as live, unknown, unmatched and replaced as a reader
// of its records, whatever gaps there are. Counted losses make no block unknown.
func TestStatsAcrossGaps(t *testing.T) {
	s := fedStream()
	s.calls.blocks.blocks = live.NewBlocks()
	readers := live.NewBlocks()
	next := uint64(1)
	pass := func(e order.Event) {
		var r trace.Record
		e.PID = 7
		if s.record(&e, &r) {
			r.Call.Resource = MemoryResource
			readers.Add(&r)
		}
		for s.out.pop(&r) {
			readers.Add(&r)
		}
	}
	side := func(x order.Side) {
		x.PID = 7
		s.sides.waiting[next] = x
		pass(order.Event{Kind: order.KindSide, Addr: next})
		next++
	}
	check := func(after string, blocks, unknown int) {
		t.Helper()
		got := s.Summary()
		want := Stats{}
		want.LiveBlocks, want.LiveBytes = readers.Live()
		want.UnknownBlocks, want.UnknownBytes = readers.Unknown()
		want.Replaced, _ = readers.Replaced()
		if got.LiveBlocks != want.LiveBlocks || got.LiveBytes != want.LiveBytes || got.UnknownBlocks != want.UnknownBlocks ||
			got.UnknownBytes != want.UnknownBytes || got.Unmatched != readers.Unmatched() || got.Replaced != want.Replaced {
			t.Errorf("after %s: %+v, readers have %+v and %d unmatched", after, got, want, readers.Unmatched())
		}
		if got.LiveBlocks != blocks || got.UnknownBlocks != unknown {
			t.Errorf("after %s: %d live, %d unknown; want %d, %d", after, got.LiveBlocks, got.UnknownBlocks, blocks, unknown)
		}
	}
	for i := range uint64(6) {
		pass(order.Event{Kind: order.KindAlloc, Addr: 0x1000 * (i + 1), Size: 1 << i})
	}
	side(order.Side{Kind: order.SideDrops, Reason: order.LossRingFull, Lost: 3})
	check("a loss that is counted", 6, 0)
	side(order.Side{Kind: order.SideGap, Reason: order.LossPaused, Seen: 1, Time: 2})
	check("a pause", 0, 6)
	pass(order.Event{Kind: order.KindFree, Addr: 0x1000})
	check("the free of an unknown block", 0, 5)
	pass(order.Event{Kind: order.KindAlloc, Addr: 0x2000, Size: 64})
	check("an address that comes again", 1, 4)
	pass(order.Event{Kind: order.KindMove, Old: 0x3000, Addr: 0x7000, Size: 128})
	check("the move of an unknown block", 2, 3)
	pass(order.Event{Kind: order.KindFree, Addr: 0x9000})
	pass(order.Event{Kind: order.KindAlloc, Addr: 0x7000, Size: 2})
	check("a free of the unknown, and a free that was lost", 2, 3)
	side(order.Side{Kind: order.SideGap, Reason: order.LossProbesMoved, Seen: 3, Time: 4})
	check("another gap", 0, 5)
	if sites := s.LiveSites(9); len(sites) != 0 || s.LiveBytes() != 0 {
		t.Errorf("%d sites with %d bytes", len(sites), s.LiveBytes())
	}
}

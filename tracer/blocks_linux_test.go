package tracer

import (
	"testing"

	"rtrace-bpf/trace"
)

// Blocks that were live in a gap are unknown until they are freed, moved or replaced, or
// the process becomes another program. Other losses make nothing unknown.
func TestBlocksAcrossGaps(t *testing.T) {
	tracer := fedTracer()
	s := &tracer.stream
	s.blocks = newBlocks()
	var sides uint64
	alloc := func(addr, size uint64) { s.record(&event{kind: kindAlloc, addr: addr, size: size}, new(trace.Record)) }
	free := func(addr uint64) { s.record(&event{kind: kindFree, addr: addr}, new(trace.Record)) }
	move := func(old, addr, size uint64) {
		s.record(&event{kind: kindMove, old: old, addr: addr, size: size}, new(trace.Record))
	}
	tell := func(x side) {
		s.sides[sides] = x
		s.record(&event{kind: kindSide, addr: sides}, new(trace.Record))
		sides++
	}
	gap := func(reason Loss) { tell(side{kind: sidePause, seen: 1, time: 2, reason: reason}) }
	check := func(when string, live int, bytes uint64, unknown int, unknownBytes, unmatched, replaced uint64) {
		t.Helper()
		g := tracer.Stats()
		if g.LiveBlocks != live || g.LiveBytes != bytes || g.UnknownBlocks != unknown || g.UnknownBytes != unknownBytes || g.Unmatched != unmatched || g.Replaced != replaced {
			t.Errorf("%s: %d blocks (%d bytes) live, %d (%d) unknown, %d frees unmatched, %d replaced", when,
				g.LiveBlocks, g.LiveBytes, g.UnknownBlocks, g.UnknownBytes, g.Unmatched, g.Replaced)
		}
	}
	for i := range uint64(6) {
		alloc(0x1000*(i+1), 1<<i)
	}
	tell(side{kind: sideDrops, reason: LossRingFull, lost: 3})
	check("a loss that is counted", 6, 63, 0, 0, 0, 0)
	gap(LossPaused)
	check("a pause", 0, 0, 6, 63, 0, 0)
	free(0x1000)
	check("the free of an unknown block", 0, 0, 5, 62, 0, 0)
	alloc(0x2000, 64)
	check("its address again", 1, 64, 4, 60, 0, 0)
	move(0x3000, 0x7000, 128)
	check("a move", 2, 192, 3, 56, 0, 0)
	gap(LossProbesMoved)
	check("a second gap", 0, 0, 5, 248, 0, 0)
	free(0x9000)
	check("a free of a block from before", 0, 0, 5, 248, 1, 0)
	if sites := tracer.LiveSites(10); len(sites) != 0 {
		t.Errorf("live sites %+v", sites)
	}
	alloc(0xa000, 1)
	alloc(0xa000, 2)
	check("a block whose free was lost", 1, 2, 5, 248, 1, 1)
	tell(side{kind: sideExec})
	check("another program", 0, 0, 0, 0, 1, 1)
}

// Under a size limit the free of an unknown block is told, as it was when it was live.
func TestUnknownBlocksUnderASizeLimit(t *testing.T) {
	tracer := fedTracer()
	s := &tracer.stream
	s.blocks, s.minSize = newBlocks(), 10
	s.record(&event{kind: kindAlloc, addr: 0x1000, size: 10}, new(trace.Record))
	s.blocks.gap()
	if !s.record(&event{kind: kindFree, addr: 0x1000}, new(trace.Record)) || s.record(&event{kind: kindFree, addr: 0x2000}, new(trace.Record)) {
		t.Error("a free that should not be told is, or the other way round")
	}
}

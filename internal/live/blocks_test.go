package live

import (
	"maps"
	"math/rand/v2"
	"testing"

	"rtrace-bpf/trace"
)

func memoryCall(op trace.Op, pid int32, id, old, size uint64) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, PID: pid, Call: trace.Call{Op: op, ID: id, OldID: old, Size: size, Resource: 1}}
}

func gap(pid int32, reason string) *trace.Record {
	return &trace.Record{Kind: trace.KindLost, PID: pid, Lost: trace.Lost{Count: 1, Reason: reason}}
}

func TestBlocks(t *testing.T) {
	alloc := func(id, size uint64) *trace.Record { return memoryCall(trace.OpAlloc, 7, id, 0, size) }
	free := func(id uint64) *trace.Record { return memoryCall(trace.OpFree, 7, id, 0, 0) }
	paused := gap(7, trace.LostPaused)
	counted := &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "segment", RefCount: true}}
	exec := &trace.Record{Kind: trace.KindExec, PID: 7}
	for _, tt := range []struct {
		name                         string
		records                      []*trace.Record
		live, unknown                int
		liveBytes, unknownBytes      uint64
		unmatched, replaced, ofBytes uint64
	}{
		{name: "live", records: []*trace.Record{alloc(1, 5), alloc(2, 6), free(1)}, live: 1, liveBytes: 6},
		{name: "an address that comes again", records: []*trace.Record{alloc(1, 5), alloc(1, 6)}, live: 1, liveBytes: 6, replaced: 1, ofBytes: 5},
		{name: "a gap", records: []*trace.Record{alloc(1, 5), paused, alloc(2, 6)}, live: 1, liveBytes: 6, unknown: 1, unknownBytes: 5},
		{name: "the other gap", records: []*trace.Record{alloc(1, 5), gap(7, trace.LostProbesMoved)}, unknown: 1, unknownBytes: 5},
		{name: "a loss that is counted", records: []*trace.Record{alloc(1, 5), gap(7, "ring full")}, live: 1, liveBytes: 5},
		{name: "freed after it", records: []*trace.Record{alloc(1, 5), paused, free(1), free(1)}, unmatched: 1},
		{name: "its address comes again after it", records: []*trace.Record{alloc(1, 5), paused, alloc(1, 6)}, live: 1, liveBytes: 6},
		{name: "moved after it", records: []*trace.Record{alloc(1, 5), paused, memoryCall(trace.OpMove, 7, 2, 1, 9)}, live: 1, liveBytes: 9},
		{name: "gap after gap", records: []*trace.Record{alloc(1, 5), paused, alloc(2, 6), paused, alloc(3, 7), paused, free(2)}, unknown: 2, unknownBytes: 12},
		{name: "of another process", records: []*trace.Record{alloc(1, 5), memoryCall(trace.OpAlloc, 8, 1, 0, 6), gap(8, trace.LostPaused)}, live: 1, liveBytes: 5, unknown: 1, unknownBytes: 6},
		{name: "of all", records: []*trace.Record{alloc(1, 5), memoryCall(trace.OpAlloc, 8, 1, 0, 6), gap(0, trace.LostPaused)}, unknown: 2, unknownBytes: 11},
		{name: "of a process that calls do not name", records: []*trace.Record{memoryCall(trace.OpAlloc, 0, 1, 0, 6), paused}, unknown: 1, unknownBytes: 6},
		{name: "exec", records: []*trace.Record{alloc(1, 5), paused, alloc(2, 5), exec}},
		{name: "references", records: []*trace.Record{counted, alloc(1, 5), alloc(1, 5), free(1)}, live: 1, liveBytes: 5},
		{name: "references across a gap", records: []*trace.Record{counted, alloc(1, 5), alloc(1, 5), paused, alloc(2, 6), paused, free(1)}, unknown: 2, unknownBytes: 11},
		{name: "the last of them", records: []*trace.Record{counted, alloc(1, 5), alloc(1, 5), alloc(2, 6), paused, alloc(3, 7), paused, free(1), free(1)}, unknown: 2, unknownBytes: 13},
		{name: "a counted address that comes again", records: []*trace.Record{counted, alloc(1, 5), alloc(1, 5), paused, alloc(1, 5), free(1)}},
	} {
		b := NewBlocks()
		for _, r := range tt.records {
			b.Add(r)
		}
		live, liveBytes := b.Live()
		unknown, unknownBytes := b.Unknown()
		replaced, ofBytes := b.Replaced()
		if live != tt.live || liveBytes != tt.liveBytes || unknown != tt.unknown || unknownBytes != tt.unknownBytes {
			t.Errorf("%s: %d (%d bytes) live, %d (%d) unknown", tt.name, live, liveBytes, unknown, unknownBytes)
		}
		if b.Unmatched() != tt.unmatched || replaced != tt.replaced || ofBytes != tt.ofBytes {
			t.Errorf("%s: %d unmatched, %d (%d bytes) replaced", tt.name, b.Unmatched(), replaced, ofBytes)
		}
	}
}

// Random calls and gaps are compared with maps: each block is in the right
// state, with its value.
func TestBlocksAgainstMaps(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 2))
	b := NewBlocks()
	known, unknown := map[uint64]uint64{}, map[uint64]uint64{}
	for i := range uint64(20_000) {
		id := rnd.Uint64N(300)
		switch n := rnd.IntN(100); {
		case n < 2:
			became := 0
			b.Lost(gap(7, trace.LostPaused), func(e Entry) {
				if known[e.ID] != e.Value {
					t.Fatalf("block %d became unknown", e.ID)
				}
				became++
			})
			if became != len(known) {
				t.Fatalf("%d became unknown, want %d", became, len(known))
			}
			maps.Copy(unknown, known)
			clear(known)
		case n < 45:
			e, fate := b.Free(7, 1, id)
			want, value := Absent, uint64(0)
			if v, ok := known[id]; ok {
				want, value = Known, v
			} else if v, ok := unknown[id]; ok {
				want, value = Unknown, v
			}
			if fate != want || e.Value != value {
				t.Fatalf("free of %d: %d, %d; want %d, %d", id, fate, e.Value, want, value)
			}
			delete(known, id)
			delete(unknown, id)
		default:
			b.Insert(7, 1, id, 1, i+1)
			delete(unknown, id)
			known[id] = i + 1
		}
		if _, fate := b.Get(7, 1, id); fate == Known != (known[id] != 0) || fate == Unknown != (unknown[id] != 0) {
			t.Fatalf("block %d is %d", id, fate)
		}
		if n, _ := b.Live(); n != len(known) {
			t.Fatalf("%d live, want %d", n, len(known))
		}
		if n, _ := b.Unknown(); n != len(unknown) {
			t.Fatalf("%d unknown, want %d", n, len(unknown))
		}
	}
	for _, blocks := range b.All() {
		for e, fate := range blocks {
			if of := map[Fate]map[uint64]uint64{Known: known, Unknown: unknown}[fate]; of[e.ID] != e.Value {
				t.Errorf("block %d is %d", e.ID, fate)
			}
			delete(known, e.ID)
			delete(unknown, e.ID)
		}
	}
	if len(known)+len(unknown) > 0 {
		t.Errorf("%d blocks are missing", len(known)+len(unknown))
	}
}

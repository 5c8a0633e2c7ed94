package record

import (
	"testing"

	"rtrace-bpf/internal/filter"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
)

// TestStackID: calls with the same stack have the same ID, others have another one, and a stack
// that is cut has none.
func TestStackID(t *testing.T) {
	s := fedStream()
	s.Take(&order.Batch{
		Events: []order.Event{
			{Kind: order.KindAlloc, Addr: 0x100, Stack: 1},
			{Kind: order.KindAlloc, Addr: 0x200, Stack: 2},
			{Kind: order.KindAlloc, Addr: 0x300, Stack: 1},
			{Kind: order.KindAlloc, Addr: 0x400},
		},
		Stacks: []order.StackDef{
			{Hash: 1, Frames: []uint64{0x1000, 0x2000}, End: object.ProbeStackEndSTACK_COMPLETE},
			{Hash: 2, Frames: []uint64{0x1000, 0x3000}, End: object.ProbeStackEndSTACK_COMPLETE},
		},
	})
	var ids []uint64
	var r trace.Record
	var first trace.Stack
	for s.Next(&r) {
		if r.Kind == trace.KindCall {
			if ids = append(ids, r.Call.Stack.ID); len(ids) == 1 {
				first = r.Call.Stack
			}
		}
	}
	if len(ids) != 4 || ids[0] == 0 || ids[1] == 0 || ids[0] == ids[1] || ids[0] != ids[2] || ids[3] != 0 {
		t.Errorf("the stacks of the calls have the IDs %d", ids)
	}
	short := first
	if filter.Cut(&short, 1); short.ID != 0 {
		t.Errorf("a stack without its outer frame has ID %d", short.ID)
	}
	c := Coverage{Stale: []StaleCode{{Extent: process.Extent{Start: 0x1000, End: 0x2000}}}}
	if c.limit(&first); len(first.Frames) != 1 || first.ID != 0 {
		t.Errorf("a stack of %d frames through doubtful code has ID %d", len(first.Frames), first.ID)
	}
}

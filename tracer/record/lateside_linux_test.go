package record

import (
	"testing"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
)

// The kernel's records of a process may come after later calls. That is a loss if those
// calls were recorded incorrectly: their stacks lead through a mapping that the trace did
// not have yet, or they count as calls of the old program.
func TestLateSides(t *testing.T) {
	library := process.Mapping{Start: 0x2000, End: 0x3000, Inode: 1, Path: "/library"}
	elsewhere := process.Mapping{Start: 0x20000, End: 0x30000, Inode: 2, Path: "/elsewhere"}
	for name, test := range map[string]struct {
		side order.Side
		lost uint64
	}{
		"mapping that a later stack leads through": {order.Side{Kind: order.SideMap, Time: 150, Mapping: library}, 1},
		"mapping of no frame":                      {order.Side{Kind: order.SideMap, Time: 150, Mapping: elsewhere}, 0},
		"mapping that is later than the stack":     {order.Side{Kind: order.SideMap, Time: 250, Mapping: library}, 0},
		"mapping that was read before":             {order.Side{Kind: order.SideMap, Time: 50, Mapping: process.Mapping{Start: 0x1000, End: 0x2000, Inode: 3}}, 0},
		"exec before calls":                        {order.Side{Kind: order.SideExec, Time: 150}, 1},
		"exec after calls":                         {order.Side{Kind: order.SideExec, Time: 300}, 0},
		"name":                                     {order.Side{Kind: order.SideName, Time: 150}, 0},
		"exit":                                     {order.Side{Kind: order.SideExit, Time: 150}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := fedStream()
			s.mappings.current = append(s.mappings.current, process.Mapping{Start: 0x1000, End: 0x2000, Inode: 3, Seen: 60})
			s.stacks.byHash[7] = &order.StackDef{Hash: 7, Frames: []uint64{0x1000, 0x2800}, End: object.ProbeStackEndSTACK_COMPLETE}
			for _, time := range []uint64{100, 200} {
				s.record(&order.Event{Kind: order.KindAlloc, Stack: 7, Time: time}, &trace.Record{})
			}
			s.sides.waiting[0] = test.side
			s.record(&order.Event{Kind: order.KindSide}, &trace.Record{})
			lost := uint64(0)
			for r := (trace.Record{}); s.out.pop(&r); {
				if r.Kind == trace.KindLost {
					lost += r.Lost.Count
				}
			}
			if counted := s.Stats.Lost[order.LossLate]; lost != test.lost || counted != test.lost {
				t.Errorf("the trace has %d late records, the summary %d, want %d", lost, counted, test.lost)
			}
		})
	}
}

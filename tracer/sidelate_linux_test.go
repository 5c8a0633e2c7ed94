package tracer

import (
	"testing"

	"rtrace-bpf/trace"
)

// What the kernel says of a process may come behind calls that are younger. That
// is a loss where these calls are told wrongly for it: their stacks lead through a
// mapping that the trace names only then, or they count as the old program's.
func TestLateSides(t *testing.T) {
	library := mapping{start: 0x2000, end: 0x3000, inode: 1, path: "/library"}
	elsewhere := mapping{start: 0x20000, end: 0x30000, inode: 2, path: "/elsewhere"}
	for name, test := range map[string]struct {
		side side
		lost uint64
	}{
		"mapping that a younger stack leads through": {side{kind: sideMap, time: 150, mapping: library}, 1},
		"mapping of no frame":                        {side{kind: sideMap, time: 150, mapping: elsewhere}, 0},
		"mapping that is younger than the stack":     {side{kind: sideMap, time: 250, mapping: library}, 0},
		"mapping that a reading has told of":         {side{kind: sideMap, time: 50, mapping: mapping{start: 0x1000, end: 0x2000, inode: 3}}, 0},
		"exec before calls":                          {side{kind: sideExec, time: 150}, 1},
		"exec behind calls":                          {side{kind: sideExec, time: 300}, 0},
		"name":                                       {side{kind: sideName, time: 150}, 0},
		"exit":                                       {side{kind: sideExit, time: 150}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := fedStream()
			s.ended = func(uint32) {}
			s.mappings.modules, s.mappings.emit = map[string]bool{}, s.emit
			s.mappings.file, s.mappings.moved = func(mapping) fileInfo { return fileInfo{} }, func(mapping, fileInfo) {}
			s.mappings.current = append(s.mappings.current, mapping{start: 0x1000, end: 0x2000, inode: 3, seen: 60})
			s.byHash[7] = &stackDef{hash: 7, frames: []uint64{0x1000, 0x2800}, end: probeStackEndSTACK_COMPLETE}
			for _, time := range []uint64{100, 200} {
				s.record(&event{kind: kindAlloc, stack: 7, time: time}, &trace.Record{})
			}
			s.sides[0] = test.side
			s.record(&event{kind: kindSide}, &trace.Record{})
			lost := uint64(0)
			for r := (trace.Record{}); s.pop(&r); {
				if r.Kind == trace.KindLost {
					lost += r.Lost.Count
				}
			}
			if counted := s.stats.Lost[LossLate]; lost != test.lost || counted != test.lost {
				t.Errorf("the trace says that %d records were late, the summary %d, want %d", lost, counted, test.lost)
			}
		})
	}
}

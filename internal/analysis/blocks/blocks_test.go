package blocks_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/blocks"
	"rtrace-bpf/trace"
)

// did is the effect of one record.
type did struct {
	Event   uint64
	Ended   uint64 // value of the block that ended
	Begun   bool
	Instead uint64 // value of the block that it replaced
	Blocks  uint64
	Bytes   uint64
}

func call(op trace.Op, resource uint32, id, old, size uint64) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: op, Resource: resource, ID: id, OldID: old, Size: size}}
}

func declare(id uint32, kind string, counted bool) *trace.Record {
	return &trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: id, Type: kind, RefCount: counted}}
}

func TestFollower(t *testing.T) {
	for _, tt := range []struct {
		name      string
		kind      string
		records   []*trace.Record
		want      []did
		unmatched uint64
		replaced  uint64
	}{
		{
			"lives of blocks", blocks.Memory,
			[]*trace.Record{
				call(trace.OpAlloc, 0, 16, 0, 100), call(trace.OpMove, 0, 64, 16, 200),
				call(trace.OpMove, 0, 64, 64, 50), call(trace.OpFree, 0, 64, 0, 0),
			},
			[]did{{1, 0, true, 0, 1, 100}, {2, 1, true, 0, 1, 200}, {3, 2, true, 0, 1, 50}, {4, 3, false, 0, 0, 0}},
			0, 0,
		},
		{
			"frees and moves of what is not live", blocks.Memory,
			[]*trace.Record{
				call(trace.OpFree, 0, 16, 0, 0), call(trace.OpFree, 0, 0, 0, 0), call(trace.OpMove, 0, 64, 16, 7), call(trace.OpMove, 0, 80, 0, 8),
			},
			[]did{{Event: 1}, {Event: 2}, {3, 0, true, 0, 1, 7}, {4, 0, true, 0, 2, 15}},
			2, 0,
		},
		{
			"a free that was not seen", blocks.Memory,
			[]*trace.Record{call(trace.OpAlloc, 0, 16, 0, 5), call(trace.OpAlloc, 0, 16, 0, 6)},
			[]did{{1, 0, true, 0, 1, 5}, {2, 0, true, 1, 1, 6}},
			0, 1,
		},
		{
			"other resources are events only, so are calls that do nothing", blocks.Memory,
			[]*trace.Record{
				declare(1, "memory", false), declare(2, "file", false),
				call(trace.OpAlloc, 1, 16, 0, 5), call(trace.OpAlloc, 2, 16, 0, 6), call(trace.OpFree, 2, 16, 0, 0),
				call(trace.OpNone, 1, 16, 0, 6), call(trace.OpAlloc, 3, 3, 0, 1),
			},
			[]did{{}, {}, {1, 0, true, 0, 1, 5}, {2, 0, false, 0, 1, 5}, {3, 0, false, 0, 1, 5}, {4, 0, false, 0, 1, 5}, {5, 0, true, 0, 2, 6}},
			0, 0,
		},
		{
			"references", "shm",
			[]*trace.Record{
				declare(9, "shm", true), call(trace.OpAlloc, 0, 16, 0, 5), call(trace.OpAlloc, 9, 16, 0, 5), call(trace.OpAlloc, 9, 16, 0, 5),
				call(trace.OpFree, 9, 16, 0, 0), call(trace.OpFree, 9, 16, 0, 0), call(trace.OpFree, 9, 16, 0, 0),
			},
			[]did{{}, {Event: 1}, {2, 0, true, 0, 1, 5}, {3, 0, false, 0, 1, 5}, {4, 0, false, 0, 1, 5}, {5, 2, false, 0, 0, 0}, {Event: 6}},
			1, 0,
		},
		{
			"exec", blocks.Memory,
			[]*trace.Record{call(trace.OpAlloc, 0, 16, 0, 5), {Kind: trace.KindExec}, call(trace.OpFree, 0, 16, 0, 0)},
			[]did{{1, 0, true, 0, 1, 5}, {Event: 1}, {Event: 2}},
			1, 0,
		},
	} {
		f := blocks.New(tt.kind)
		var got []did
		for _, r := range tt.records {
			s := f.Add(r)
			d := did{Event: f.Event(), Begun: s.Begins}
			if s.Ended {
				d.Ended = s.Old.Value
			}
			if s.Begins {
				if old, replaced := f.Begin(&r.Call, f.Event()); replaced {
					d.Instead = old.Value
				}
			}
			d.Blocks, d.Bytes = f.Live()
			got = append(got, d)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
		if f.Unmatched() != tt.unmatched || f.Replaced() != tt.replaced {
			t.Errorf("%s: %d unmatched, %d replaced", tt.name, f.Unmatched(), f.Replaced())
		}
	}
}

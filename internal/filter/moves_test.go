package filter_test

import (
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/filter"
	"rtrace-bpf/trace"
)

func TestJoinMoves(t *testing.T) {
	by := func(function string, seq uint64, op trace.Op, id uint64) *trace.Record {
		r := call(seq, op, id)
		r.TID, r.Call.Function = 1, function
		return r
	}
	with := func(r *trace.Record, change func(*trace.Record)) *trace.Record {
		change(r)
		return r
	}
	free, alloc := by("realloc", 1, trace.OpFree, 16), by("realloc", 2, trace.OpAlloc, 32)
	move := with(alloc.Clone(), func(r *trace.Record) { r.Call.Op, r.Call.OldID, r.Call.EntryTime = trace.OpMove, 16, 1 })
	early := &trace.Record{Kind: trace.KindHeader, Header: trace.Header{Format: "mtrc", Version: "1.4.3"}}
	later := &trace.Record{Kind: trace.KindHeader, Header: trace.Header{Format: "mtrc", Version: "1.5.1"}}
	indexed := func(r *trace.Record) *trace.Record {
		return with(r, func(r *trace.Record) { r.Call.Index = 9 })
	}
	for _, tt := range []struct {
		name          string
		records, want []*trace.Record
	}{
		{"a realloc", []*trace.Record{free, alloc}, []*trace.Record{move}},
		{"the last call", []*trace.Record{alloc, free}, []*trace.Record{alloc, free}},
		{"two frees", []*trace.Record{free, free, alloc}, []*trace.Record{free, move}},
		{"another function", []*trace.Record{free, by("malloc", 2, trace.OpAlloc, 32)}, nil},
		{"another thread", []*trace.Record{free, with(alloc.Clone(), func(r *trace.Record) { r.TID = 2 })}, nil},
		{"another process", []*trace.Record{free, with(alloc.Clone(), func(r *trace.Record) { r.PID = 2 })}, nil},
		{"something between", []*trace.Record{free, comment("x"), alloc}, nil},
		{"no address", []*trace.Record{by("realloc", 1, trace.OpFree, 0), alloc}, nil},
		{"a move is one already", []*trace.Record{move, free, comment("x")}, nil},
		{
			"another resource",
			[]*trace.Record{{Kind: trace.KindResource, Resource: trace.Resource{Type: "fd"}}, by("falloc", 1, trace.OpFree, 3), by("falloc", 2, trace.OpAlloc, 3)},
			nil,
		},
		{
			"an index of old MTRC",
			[]*trace.Record{early, indexed(by("free", 1, trace.OpFree, 16)), indexed(by("malloc", 2, trace.OpAlloc, 32))},
			[]*trace.Record{early, with(indexed(by("malloc", 2, trace.OpAlloc, 32)), func(r *trace.Record) {
				r.Call.Op, r.Call.OldID, r.Call.EntryTime = trace.OpMove, 16, 1
			})},
		},
		{"an index of new MTRC", []*trace.Record{later, indexed(by("free", 1, trace.OpFree, 16)), indexed(by("malloc", 2, trace.OpAlloc, 32))}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cut := errors.New("cut")
			for _, end := range []error{io.EOF, cut} {
				want := tt.want
				if want == nil {
					want = tt.records
				}
				got, err := trace.Load(filter.NewJoinMoves(&list{records: tt.records, err: end}))
				if end == io.EOF && err != nil || end == cut && !errors.Is(err, cut) {
					t.Errorf("error %v, want %v", err, end)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			}
		})
	}
}

// JoinMoves joins the calls that SplitMoves splits.
func TestJoinSplitMoves(t *testing.T) {
	m := call(1, trace.OpMove, 32)
	m.Call.OldID, m.Call.Function, m.Call.Size, m.Call.EntryTime = 16, "realloc", 5, 1
	other := call(2, trace.OpFree, 32)
	got, err := trace.Load(filter.NewJoinMoves(filter.NewSplitMoves(&list{records: []*trace.Record{m, m, other}, err: io.EOF})))
	if err != nil {
		t.Fatal(err)
	}
	want := []*trace.Record{m.Clone(), m.Clone(), other.Clone()}
	for i, seq := range []uint64{2, 4, 5} {
		want[i].Call.Seq = seq
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

package filter_test

import (
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rtrace-bpf/internal/filter"
	"rtrace-bpf/trace"
)

// list reads the given records and reuses the memory of one Record.
type list struct {
	records []*trace.Record
	err     error
	frames  []uint64
}

func (l *list) ReadRecord(r *trace.Record) error {
	if len(l.records) == 0 {
		return l.err
	}
	*r = *l.records[0]
	l.frames = append(l.frames[:0], r.Call.Stack.Frames...)
	if r.Kind == trace.KindCall {
		r.Call.Stack.Frames = l.frames
	}
	l.records = l.records[1:]
	return nil
}

func call(seq uint64, op trace.Op, id uint64) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, Time: int64(seq), Call: trace.Call{
		Seq: seq, Op: op, Function: "f", ID: id, Stack: trace.Stack{Frames: []uint64{seq}, End: trace.StackUnknown},
	}}
}

func comment(s string) *trace.Record { return &trace.Record{Kind: trace.KindComment, Comment: s} }

func TestLeaks(t *testing.T) {
	cut := &trace.SyntaxError{Format: "x", Err: trace.ErrTruncated}
	src := &list{err: cut, records: []*trace.Record{
		comment("a"), call(1, trace.OpAlloc, 16), comment("b"), comment("c"), call(2, trace.OpAlloc, 32), call(3, trace.OpFree, 16),
		comment("d"),
		{Kind: trace.KindOpaque, Opaque: trace.Opaque{Data: []byte("x")}},
		call(4, trace.OpAlloc, 48), call(5, trace.OpFree, 64),
		comment("e"),
	}}
	l := filter.NewLeaks(src)
	got, err := trace.Load(l)
	if err != cut {
		t.Errorf("error %v", err)
	}
	want := []*trace.Record{
		comment("a"), comment("b"), comment("c"), call(2, trace.OpAlloc, 32), comment("d"),
		{Kind: trace.KindOpaque, Opaque: trace.Opaque{Data: []byte("x")}},
		call(4, trace.OpAlloc, 48), comment("e"),
	}
	ignore := cmpopts.IgnoreFields(trace.Record{}, "Call")
	for i, r := range want {
		if i >= len(got) || r.Kind != got[i].Kind {
			t.Fatalf("record %d is missing or of another kind", i)
		}
		if r.Kind != trace.KindCall {
			if d := cmp.Diff(r, got[i], ignore, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("record %d (-want +got):\n%s", i, d)
			}
		} else if d := cmp.Diff(r.Call, got[i].Call, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("record %d (-want +got):\n%s", i, d)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d records, want %d", len(got), len(want))
	}
	if n := l.Finder().Unmatched(); n != 1 {
		t.Errorf("%d unmatched frees", n)
	}
	var r trace.Record
	if err := l.ReadRecord(&r); err != cut {
		t.Errorf("second error %v", err)
	}
}

func TestSplitMoves(t *testing.T) {
	move := call(7, trace.OpMove, 32)
	move.Time = 70
	move.Call.OldID, move.Call.Size, move.Call.EntryTime = 16, 100, 60
	move.Call.Args = []trace.Arg{{Name: "a", Value: "b"}}
	late := move.Clone()
	late.Call.EntryTime = 0
	s := filter.NewSplitMoves(&list{err: io.EOF, records: []*trace.Record{
		comment("x"), call(5, trace.OpAlloc, 16), move, late, call(9, trace.OpFree, 32),
	}})
	got, err := trace.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	freed := func(seq uint64, time int64) *trace.Record {
		return &trace.Record{Kind: trace.KindCall, Time: time, Call: trace.Call{Seq: seq, Op: trace.OpFree, Function: "f", ID: 16}}
	}
	made := func(seq uint64) *trace.Record {
		return &trace.Record{Kind: trace.KindCall, Time: 70, Call: trace.Call{
			Seq: seq, Op: trace.OpAlloc, Function: "f", ID: 32, Size: 100, Stack: move.Call.Stack, Args: move.Call.Args,
		}}
	}
	first, last := call(5, trace.OpAlloc, 16), call(9, trace.OpFree, 32)
	first.Call.Seq, last.Call.Seq = 1, 6
	want := []*trace.Record{comment("x"), first, freed(2, 60), made(3), freed(4, 70), made(5), last}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
}

func TestSplitMovesError(t *testing.T) {
	bad := errors.New("bad")
	var r trace.Record
	if err := filter.NewSplitMoves(&list{err: bad}).ReadRecord(&r); err != bad {
		t.Errorf("error %v", err)
	}
}

package mtrc

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// step is a record in short form and the events that it becomes.
type step struct {
	record string // OP [PID:]ADDRESS[>ADDRESS][*SIZE][#INDEX]
	events string // as "A1@16*8 F1"
}

// parse makes a record of its short form.
func parse(t testing.TB, text string) *trace.Record {
	t.Helper()
	r := &trace.Record{Kind: trace.KindCall}
	c := &r.Call
	word, rest, _ := strings.Cut(text, " ")
	scan := func(sep string, to *uint64) {
		if before, after, ok := strings.Cut(rest, sep); ok {
			rest = before
			if _, err := fmt.Sscan(after, to); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
		}
	}
	scan("#", &c.Index)
	scan("*", &c.Size)
	if before, after, ok := strings.Cut(rest, ":"); ok {
		if _, err := fmt.Sscan(before, &r.PID); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		rest = after
	}
	switch word {
	case "exec":
		r.Kind = trace.KindExec
		return r
	case "exit":
		r.Kind = trace.KindExit
		r.Exit.Process = true
		return r
	case "exit-thread":
		r.Kind = trace.KindExit
		return r
	case "file", "memory":
		r.Kind = trace.KindResource
		r.Resource = trace.Resource{ID: 9, Type: word}
		return r
	case "open":
		c.Op, c.Resource = trace.OpAlloc, 9
	case "alloc":
		c.Op = trace.OpAlloc
	case "pvalloc":
		c.Op, c.Function = trace.OpAlloc, word
	case "free":
		c.Op = trace.OpFree
	case "move":
		c.Op = trace.OpMove
		scan(">", &c.ID)
		if _, err := fmt.Sscan(rest, &c.OldID); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return r
	case "none":
	default:
		t.Fatalf("%q is no record", text)
	}
	if _, err := fmt.Sscan(rest, &c.ID); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return r
}

func inWords(events []wire.Event) string {
	var words []string
	for _, e := range events {
		if e.Kind == wire.Free {
			words = append(words, fmt.Sprintf("F%d", e.Index))
		} else {
			words = append(words, fmt.Sprintf("%c%d@%d*%d", e.Kind, e.Index, e.Address, e.Size))
		}
	}
	return strings.Join(words, " ")
}

func TestIndexer(t *testing.T) {
	tests := []struct {
		name  string
		steps []step
		stats IndexStats
		limit uint64
	}{
		{name: "numbers from 1", steps: []step{
			{"alloc 16*8", "A1@16*8"},
			{"alloc 32*0", "A2@32*0"},
			{"free 16", "F1"},
			{"alloc 16*9", "A3@16*9"},
			{"free 16", "F3"},
			{"free 32", "F2"},
		}},
		{name: "moves", steps: []step{
			{"alloc 16*8", "A1@16*8"},
			{"move 16>32*8", "R1@32*8"},
			{"move 32>32*9", "R1@32*9"},
			{"move 32>32*9", ""},
			{"free 16", ""},
			{"free 32", "F1"},
			{"move 48>64*5", "A2@64*5"},
			{"alloc 80*1", "A3@80*1"},
			{"move 64>80*6", "F3 R2@80*6"},
			{"free 80", "F2"},
		}, stats: IndexStats{Unchanged: 1, Unmatched: 1, Adopted: 1, Replaced: 1}},
		{name: "pvalloc", steps: []step{
			{"pvalloc 4096*123", "A1@4096*4096"},
			{"pvalloc 8192*4096", "A2@8192*4096"},
			{"pvalloc 12288*4097", "A3@12288*8192"},
			{"pvalloc 20480*0", "A4@20480*4096"},
			{"pvalloc 24576*18446744073709551615", "A5@24576*18446744073709551615"},
			{"move 4096>4096*4096", ""},
			{"move 4096>4096*123", "R1@4096*123"},
			{"free 4096", "F1"},
		}, stats: IndexStats{Unchanged: 1}},
		{name: "lost frees", steps: []step{
			{"alloc 16*8", "A1@16*8"},
			{"alloc 16*9", "F1 A2@16*9"},
			{"move 99>16*7", "F2 A3@16*7"},
			{"free 16", "F3"},
			{"free 16", ""},
		}, stats: IndexStats{Replaced: 2, Adopted: 1, Unmatched: 1}},
		{name: "indices are kept", steps: []step{
			{"alloc 16*8#40", "A40@16*8"},
			{"alloc 32*8#7", "A7@32*8"},
			{"alloc 48*8", "A41@48*8"},
			{"move 16>64*8#40", "R40@64*8"},
			{"free 64#40", "F40"},
			{"alloc 16*1#40", "A40@16*1"},
			{"move 77>80*2#39", "A39@80*2"},
		}, stats: IndexStats{Adopted: 1}},
		{name: "an index that is in use", steps: []step{
			{"alloc 16*8#1", "A1@16*8"},
			{"alloc 32*8#1", "A2@32*8"},
			{"free 32#1", "F2"},
			{"free 32#1", ""},
			{"free 16#1", "F1"},
		}, stats: IndexStats{Renumbered: 1, Unmatched: 1}},
		{name: "a block that was replaced is not freed again", steps: []step{
			{"alloc 16*8#1", "A1@16*8"},
			{"alloc 16*9#2", "F1 A2@16*9"},
			{"free 16#1", ""},
			{"move 16>32*5#1", "A1@32*5"},
			{"free 16#2", "F2"},
		}, stats: IndexStats{Replaced: 1, Unmatched: 1, Adopted: 1}},
		{name: "own numbers first, then others", steps: []step{
			{"alloc 16*8", "A1@16*8"},
			{"alloc 32*8#1", "A2@32*8"},
			{"alloc 48*8#3", "A3@48*8"},
			{"free 16", "F1"},
		}, stats: IndexStats{Renumbered: 1}},
		{name: "processes are apart", steps: []step{
			{"alloc 1:16*8", "A1@16*8"},
			{"alloc 2:16*8", "A2@16*8"},
			{"free 3:16", ""},
			{"free 1:16", "F1"},
			{"alloc 1:32*8", "A3@32*8"},
			{"alloc 2:32*8", "A4@32*8"},
			{"exec 2:", ""},
			{"free 2:32", ""},
			{"alloc 2:16*8", "A5@16*8"},
			{"exit-thread 1:", ""},
			{"free 1:32", "F3"},
			{"exit 2:", ""},
			{"free 2:16", ""},
		}, stats: IndexStats{Unmatched: 3}},
		{name: "other resources", steps: []step{
			{"open 3*1", "A1@3*1"}, // not declared
			{"file", ""},
			{"open 4*1", ""},
			{"alloc 16*8", "A2@16*8"},
			{"none 16*8", ""},
			{"memory", ""},
			{"open 5*1", "A3@5*1"},
		}, stats: IndexStats{Foreign: 2}},
		{name: "numbers are used up", limit: 6, steps: []step{
			{"alloc 16*8", "A1@16*8"},
			{"alloc 32*8", "A2@32*8"},
			{"alloc 48*8#6", "A3@48*8"},
			{"alloc 64*8#5", "A5@64*8"},
			{"free 32", "F2"},
			{"alloc 80*8", "A2@80*8"},
			{"free 16", "F1"},
			{"alloc 96*8", "A4@96*8"},
			{"alloc 99*8", "A1@99*8"},
			{"free 48#6", "F3"},
		}, stats: IndexStats{Renumbered: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := NewIndexer()
			if tt.limit != 0 {
				x = newIndexer(tt.limit)
			}
			for i, s := range tt.steps {
				if got := inWords(x.Events(parse(t, s.record))); got != s.events {
					t.Errorf("step %d, %s: %q, want %q", i+1, s.record, got, s.events)
				}
			}
			if d := cmp.Diff(tt.stats, x.Stats()); d != "" {
				t.Errorf("stats (-want +got):\n%s", d)
			}
		})
	}
}

func TestIndexerSource(t *testing.T) {
	x := NewIndexer()
	r := &trace.Record{Kind: trace.KindCall, TID: 7, Call: trace.Call{
		Op: trace.OpAlloc, ID: 16, Size: 8, Caller: trace.Caller{Function: "f", Line: 9},
	}}
	want := wire.Event{
		Kind: wire.Alloc, Index: 1, Address: 16, Size: 8,
		Source: wire.Source{Thread: 7, Function: wire.Name{Text: "f", Known: true}, Line: 9},
	}
	if d := cmp.Diff([]wire.Event{want}, x.Events(r)); d != "" {
		t.Error(d)
	}
	// A block whose free was lost is freed without a source. The thread in MTRC's form
	// is better than none.
	r.TID, r.Call.Thread, r.Call.Caller = -1, 1<<40, trace.Caller{File: "g"}
	want.Index = 2
	want.Source = wire.Source{Thread: 1 << 40, File: wire.Name{Text: "g", Known: true}}
	if d := cmp.Diff([]wire.Event{{Kind: wire.Free, Index: 1}, want}, x.Events(r)); d != "" {
		t.Error(d)
	}
	heap := &trace.Record{Kind: trace.KindHeapGrow, HeapGrow: trace.HeapGrow{Address: 4096, Size: 8192, Internal: true}}
	if d := cmp.Diff([]wire.Event{{Kind: wire.Internal, Address: 4096, Size: 8192}}, x.Events(heap)); d != "" {
		t.Error(d)
	}
	for kind := range trace.KindEnd + 1 {
		if kind != trace.KindCall && kind != trace.KindHeapGrow && x.Events(&trace.Record{Kind: kind}) != nil {
			t.Errorf("%v becomes an event", kind)
		}
	}
}

// rules checks the rules for events.
type rules map[uint64]bool // live indices

func (r rules) check(t testing.TB, events []wire.Event) {
	t.Helper()
	for _, e := range events {
		switch e.Kind {
		case wire.Alloc:
			if e.Index == 0 || r[e.Index] {
				t.Fatalf("A of index %d, live %v", e.Index, r[e.Index])
			}
			r[e.Index] = true
		case wire.Realloc, wire.Free:
			if !r[e.Index] {
				t.Fatalf("%c of index %d, which is not live", e.Kind, e.Index)
			}
			if e.Kind == wire.Free {
				delete(r, e.Index)
			}
		}
	}
}

// script makes records of bytes, four each, with so few addresses and indices that they
// collide.
func script(data []byte) (all []*trace.Record) {
	for part := range slices.Chunk(data, 4) {
		if len(part) < 4 {
			break
		}
		r := &trace.Record{Kind: trace.KindCall, PID: int32(part[0] >> 6)}
		c := &r.Call
		c.ID, c.OldID = uint64(part[1]&15), uint64(part[1]>>4)
		c.Size, c.Index = uint64(part[2]&3), uint64(part[3]&31)
		switch part[0] & 15 {
		case 0:
			r.Kind = trace.KindExec
		case 1:
			r.Kind = trace.KindExit
			r.Exit.Process = part[1] > 127
		case 2, 3, 4, 5, 6, 7:
			c.Op = trace.OpAlloc
		case 8, 9, 10:
			c.Op = trace.OpFree
		default:
			c.Op = trace.OpMove
		}
		all = append(all, r)
	}
	return all
}

// FuzzIndexer checks the rules for events for any records. The blocks that are live by
// the events are those that the Indexer knows, except for those that an exec voided.
func FuzzIndexer(f *testing.F) {
	f.Add([]byte{2, 1, 1, 1, 8, 1, 0, 1, 2, 1, 1, 0, 11, 0x12, 2, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, limit := range []uint64{1 << 40, 200} {
			x, r, void := newIndexer(limit), rules{}, map[uint64]bool{}
			x.forget = func(index uint64) {
				void[index] = true // it stays live in the file
				delete(r, index)
			}
			for _, rec := range script(data) {
				events := x.Events(rec)
				for _, e := range events {
					if limit > 200 && void[e.Index] {
						t.Fatalf("%c of index %d, which an exec left live", e.Kind, e.Index)
					}
				}
				r.check(t, events)
				if len(r) != x.blocks.Len() || x.byIndex != nil && len(r) != x.byIndex.Len() {
					t.Fatalf("%d blocks are live, the indexer knows %d", len(r), x.blocks.Len())
				}
			}
		}
	})
}

func TestIndexerRandom(t *testing.T) {
	random := uint32(1)
	data := make([]byte, 40_000)
	for i := range data {
		random = random*1664525 + 1013904223
		data[i] = byte(random >> 24)
	}
	x, r := NewIndexer(), rules{}
	x.forget = func(index uint64) { delete(r, index) }
	for _, rec := range script(data) {
		r.check(t, x.Events(rec))
	}
	s := x.Stats()
	if s.Unmatched == 0 || s.Adopted == 0 || s.Replaced == 0 || s.Renumbered == 0 || s.Unchanged == 0 {
		t.Errorf("not everything happened: %+v", s)
	}
	x.Reset()
	if got := inWords(x.Events(parse(t, "alloc 1*1"))); got != "A1@1*1" {
		t.Errorf("after Reset: %s", got)
	}
}

package library_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/library"
	"rtrace-bpf/trace"
)

const (
	a = "/lib/a.so"
	b = "/lib/b.so"
)

func mapping(kind trace.Kind, now int64, start, end uint64, path string) *trace.Record {
	return &trace.Record{Kind: kind, Time: now, PID: 7, Mapping: trace.Mapping{Start: start, End: end, Path: path}}
}

func call(op trace.Op, id, old, size, caller uint64) *trace.Record {
	r := &trace.Record{Kind: trace.KindCall, PID: 7, Call: trace.Call{Op: op, ID: id, OldID: old, Size: size}}
	if caller != 0 {
		r.Call.Stack = trace.Stack{Frames: []uint64{caller}, End: trace.StackTruncated}
	}
	return r
}

// Addresses belong to the file that is mapped there at the time.
func TestMaps(t *testing.T) {
	m := library.NewMaps(true)
	m.Add(mapping(trace.KindMapping, 1, 0x1000, 0x2000, a))
	m.Add(mapping(trace.KindMapping, 2, 0x3000, 0x4000, b))
	for addr, want := range map[uint64]string{0xfff: "", 0x1000: a, 0x1fff: a, 0x2000: "", 0x3000: b, 0x4000: ""} {
		if got, ok := m.Find(7, addr); got != want || ok != (want != "") {
			t.Errorf("%#x: %q, %v", addr, got, ok)
		}
	}
	if _, ok := m.Find(8, 0x1000); ok {
		t.Error("another process has the mapping")
	}
	m.Add(mapping(trace.KindUnmapping, 3, 0x1000, 0x2000, a))
	if _, ok := m.Find(7, 0x1000); ok {
		t.Error("the mapping is still there")
	}
	m.Add(mapping(trace.KindMapping, 4, 0x1800, 0x3800, a)) // over b
	if got, _ := m.Find(7, 0x3000); got != a {
		t.Errorf("0x3000 is %s", got)
	}
	m.Add(&trace.Record{Kind: trace.KindExec, Time: 5, PID: 7})
	m.Add(mapping(trace.KindMapping, 6, 0x1000, 0x2000, b))
	type row struct {
		path     string
		from, to int64
	}
	var got []row
	for _, x := range m.List() {
		got = append(got, row{x.Mapping.Path, x.From, x.To})
	}
	want := []row{{a, 1, 3}, {b, 2, 4}, {a, 4, 5}, {b, 6, 0}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(row{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Blocks count for the library that allocated them, within the window and in all.
func TestAccount(t *testing.T) {
	account := library.NewAccount()
	add := func(counts bool, records ...*trace.Record) {
		for _, r := range records {
			account.Add(r, counts)
		}
	}
	add(false, mapping(trace.KindMapping, 1, 0x1000, 0x2000, a), mapping(trace.KindMapping, 2, 0x3000, 0x4000, b),
		call(trace.OpAlloc, 16, 0, 100, 0x1001), call(trace.OpAlloc, 32, 0, 50, 0x1001))
	add(true,
		call(trace.OpFree, 16, 0, 0, 0x3001),    // a's, freed by b
		call(trace.OpAlloc, 48, 0, 7, 0x1001),   // a: 57
		call(trace.OpMove, 64, 32, 200, 0x3001), // from a to b
		call(trace.OpAlloc, 80, 0, 1, 0),        // without a caller
		call(trace.OpAlloc, 96, 0, 2, 0x5000),   // from no file
		call(trace.OpFree, 112, 0, 0, 0x3001),   // unknown block
		call(trace.OpFree, 96, 0, 0, 0))
	key := func(path string) library.Key { return library.Key{PID: 7, Path: path} }
	want := []library.Sums{
		{Key: key(b), Allocs: 1, Bytes: 200, Persistent: 1, PersistentBytes: 200, End: 200, Max: 200, Live: 1},
		{Key: key(a), Allocs: 1, Bytes: 7, Frees: 2, Persistent: 1, PersistentBytes: 7, Start: 150, End: 7, Min: 7, Max: 150, Live: 1},
		{Key: key(library.Unknown), Allocs: 1, Bytes: 1, Persistent: 1, PersistentBytes: 1, End: 1, Max: 1, Live: 1},
		{Key: key(library.Unmapped), Allocs: 1, Bytes: 2, Frees: 1, Max: 2},
	}
	if d := cmp.Diff(want, account.List()); d != "" || account.Unmatched != 1 {
		t.Errorf("%d unmatched; (-want +got):\n%s", account.Unmatched, d)
	}
	// A block whose free is missing ends when its address is allocated again.
	add(true, call(trace.OpAlloc, 64, 0, 5, 0x1001))
	if got := account.List(); got[0].Path != a || got[0].Live != 2 || got[0].End != 12 {
		t.Errorf("%+v", got)
	}
	// After an exec the old blocks are gone.
	add(true, &trace.Record{Kind: trace.KindExec, PID: 7})
	for _, s := range account.List() {
		if s.Live != 0 || s.End != 0 || s.Persistent != 0 || s.PersistentBytes != 0 {
			t.Errorf("%+v", s)
		}
	}
}

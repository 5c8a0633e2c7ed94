package excerpt

import (
	"path/filepath"
	"slices"
	"testing"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/trace"
)

// sink counts the records that go on.
type sink struct{ records, closed int }

func (s *sink) WriteRecord(*trace.Record) error { s.records++; return nil }
func (s *sink) Flush() error                    { return nil }
func (s *sink) Close() error                    { s.closed++; return nil }

// feed writes records to a writer.
func feed(t *testing.T, w trace.Writer, all ...trace.Record) {
	t.Helper()
	for i := range all {
		all[i].PID = 7
		if err := w.WriteRecord(&all[i]); err != nil {
			t.Fatal(err)
		}
	}
}

func call(at int64, id uint64) trace.Record {
	return trace.Record{Kind: trace.KindCall, Time: at, TID: 7, Call: trace.Call{Op: trace.OpAlloc, Resource: 1, ID: id, Size: 8}}
}

func mapping(kind trace.Kind, from, to uint64) trace.Record {
	return trace.Record{Kind: kind, Mapping: trace.Mapping{Start: from, End: to, Path: "/bin/x"}}
}

// begin returns what a recording begins with.
func begin() []trace.Record {
	return []trace.Record{
		{Kind: trace.KindHeader, Time: 1, Header: trace.Header{Arch: "x86_64", PointerSize: 8, Clock: trace.ClockMonotonic, Ends: true}},
		{Kind: trace.KindProcess, Process: trace.Process{Name: "x"}},
		{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory", Desc: "memory"}},
		mapping(trace.KindMapping, 0x1000, 0x2000),
		mapping(trace.KindMapping, 0x3000, 0x4000),
		mapping(trace.KindUnmapping, 0x3000, 0x4000),
	}
}

func read(t *testing.T, path string) (kinds []trace.Kind, ids []uint64) {
	t.Helper()
	in, err := decoder.OpenFile(path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	all, err := trace.Load(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		kinds = append(kinds, r.Kind)
		if r.Kind == trace.KindCall {
			ids = append(ids, r.Call.ID)
		}
	}
	return kinds, ids
}

// The trace has the calls of its time, even if they come late, and what is in effect at its
// beginning.
func TestExcerpt(t *testing.T) {
	e := New(Options{Format: "jsonl", Output: output.Options{Path: filepath.Join(t.TempDir(), "trace")}})
	to := new(sink)
	w := e.Writer(7, to)
	feed(t, w, begin()...)
	before := now()
	feed(t, w, call(before, 0x10))
	paths, err := e.Start()
	if err != nil || len(paths) != 1 || !e.On() || !slices.Equal(e.Paths(), paths) {
		t.Fatalf("%q, %v", paths, err)
	}
	feed(t, w, call(before, 0x20), call(now(), 0x30))
	inside := now()
	stopped := make(chan error)
	go func() {
		_, err := e.Stop()
		stopped <- err
	}()
	for e.On() { // until Stop has taken its time
	}
	feed(t, w, call(inside, 0x40), call(now(), 0x50))
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	feed(t, w, call(now(), 0x60))
	kinds, ids := read(t, paths[0])
	if !slices.Equal(ids, []uint64{0x30, 0x40}) {
		t.Errorf("calls %#x", ids)
	}
	want := []trace.Kind{trace.KindHeader, trace.KindProcess, trace.KindResource, trace.KindMapping, trace.KindCall, trace.KindCall, trace.KindEnd}
	if !slices.Equal(kinds, want) {
		t.Errorf("records %v, want %v", kinds, want)
	}
	if err := w.Close(); err != nil || to.closed != 1 || to.records != 12 {
		t.Errorf("%v, %+v", err, to)
	}
	if _, err := e.Start(); err != ErrEnded {
		t.Errorf("after the end: %v", err)
	}
}

// A trace is complete when the recording ends, with one end.
func TestExcerptAtTheEnd(t *testing.T) {
	for _, ends := range []bool{false, true} {
		e := New(Options{Format: "jsonl", Output: output.Options{Path: filepath.Join(t.TempDir(), "trace")}})
		w := e.Writer(7, new(sink))
		feed(t, w, begin()...)
		paths, err := e.Start()
		if err != nil {
			t.Fatal(err)
		}
		feed(t, w, call(now(), 0x10))
		if ends {
			feed(t, w, trace.Record{Kind: trace.KindEnd, Time: now()})
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		kinds, ids := read(t, paths[0])
		if n := len(kinds); !slices.Equal(ids, []uint64{0x10}) || kinds[n-1] != trace.KindEnd || kinds[n-2] == trace.KindEnd {
			t.Errorf("%v, calls %#x", kinds, ids)
		}
	}
}

// After an error, no file is left and nothing is switched on.
func TestExcerptOfTwo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace") // a file, which has room for one trace
	e := New(Options{Format: "jsonl", Output: output.Options{Path: path}})
	for range 2 {
		feed(t, e.Writer(7, new(sink)), begin()...)
	}
	if paths, err := e.Start(); err == nil || paths != nil || e.On() || len(e.Paths()) > 0 {
		t.Errorf("%q, %v", paths, err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

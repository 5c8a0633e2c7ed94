package resolve

import (
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/trace"
)

// records is a trace in memory.
type records []trace.Record

func (r *records) ReadRecord(rec *trace.Record) error {
	if len(*r) == 0 {
		return io.EOF
	}
	*rec = (*r)[0]
	*r = (*r)[1:]
	return nil
}

func TestReader(t *testing.T) {
	call := func(stack trace.Stack) trace.Record {
		return trace.Record{Kind: trace.KindCall, PID: 5, Call: trace.Call{Stack: stack}}
	}
	given := []string{"", "main() at demo.c:12", ""}
	src := records{
		{Kind: trace.KindHeader, Header: trace.Header{Filter: "leaks"}},
		call(trace.Stack{Frames: []uint64{0x11011}, End: trace.StackComplete}),
		*mapped(0x10000, 0x13000, 0, 0, "/a"),
		call(trace.Stack{Frames: []uint64{0x11011, 0x5, 0x12001}, End: trace.StackComplete}),
		call(trace.Stack{Frames: []uint64{0x11011, 0x5, 0x12001}, Names: given}),
		call(trace.Stack{End: trace.StackAbsent}),
		*unmapped(0x10000, 0x13000),
		call(trace.Stack{Frames: []uint64{0x11011}}),
		{Kind: trace.KindEnd},
	}
	got, err := trace.Load(NewReader(&src, New(opener(map[string][]byte{"/a": library("aaaa")}))))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		nil, {"in ??"}, nil, {"f() from /a", "in ??", "g() from /a"}, {"f() from /a", "main() at demo.c:12", "g() from /a"}, nil, nil, {"in ??"}, nil,
	}
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i, rec := range got {
		if diff := cmp.Diff(want[i], rec.Call.Stack.Names); diff != "" {
			t.Errorf("record %d: %s", i, diff)
		}
	}
	if got[0].Header.Filter != "leaks|resolve" {
		t.Errorf("filter %q", got[0].Header.Filter)
	}
	if diff := cmp.Diff([]string{"", "main() at demo.c:12", ""}, given); diff != "" {
		t.Error("the names of the reader below were changed:", diff)
	}
	broken := errors.New("broken")
	if err := NewReader(failing{broken}, New(Options{})).ReadRecord(new(trace.Record)); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the reader below", err)
	}
	for list, want := range map[string]string{"": "resolve", "leaks|resolve": "leaks|resolve", "resolved": "resolved|resolve"} {
		if got := WithFilter(list); got != want {
			t.Errorf("%q becomes %q, want %q", list, got, want)
		}
	}
}

type failing struct{ err error }

func (f failing) ReadRecord(*trace.Record) error { return f.err }

// endless returns the same call forever.
type endless struct{ frames []uint64 }

func (e *endless) ReadRecord(rec *trace.Record) error {
	rec.Kind = trace.KindCall
	rec.Call.Stack = trace.Stack{Frames: e.frames, End: trace.StackComplete}
	return nil
}

// deep returns a reader of calls with ten frames each.
func deep() (*Reader, *endless) {
	r := New(opener(map[string][]byte{"/a": library("aaaa")}))
	r.Observe(mapped(0x10000, 0x13000, 0, 0, "/a"))
	src := &endless{}
	for i := range uint64(10) {
		src.frames = append(src.frames, 0x11011+i)
	}
	return NewReader(src, r), src
}

func TestReaderAllocatesNothing(t *testing.T) {
	rd, _ := deep()
	var rec trace.Record
	read := func() {
		if err := rd.ReadRecord(&rec); err != nil || rec.Call.Stack.Names[0] != "f() from /a" {
			t.Fatal(rec.Call.Stack, err)
		}
	}
	read()
	if n := testing.AllocsPerRun(100, read); n != 0 {
		t.Errorf("%v allocations per call, want 0", n)
	}
}

func BenchmarkReader(b *testing.B) {
	rd, src := deep()
	var rec trace.Record
	b.ReportAllocs()
	for b.Loop() {
		if err := rd.ReadRecord(&rec); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(src.frames)), "ns/frame")
}

func BenchmarkCached(b *testing.B) {
	rd, _ := deep()
	b.ReportAllocs()
	for b.Loop() {
		if name, _, _ := rd.resolver.Name(0x11011); name != "f" {
			b.Fatal(name)
		}
	}
}

func BenchmarkNotCached(b *testing.B) {
	rd, _ := deep()
	b.ReportAllocs()
	for b.Loop() {
		rd.resolver.version++
		if name, _, _ := rd.resolver.Name(0x11011); name != "f" {
			b.Fatal(name)
		}
	}
}

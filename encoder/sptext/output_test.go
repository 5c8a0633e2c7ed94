package sptext

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/trace"
)

func TestSummary(t *testing.T) {
	var b bytes.Buffer
	w, _ := New(&b, Options{})
	sums := []LeakSum{{"memory", "memory allocation in bytes", 7, 665}, {"fd", "x", 3000000000, 1 << 40}}
	if err := errors.Join(w.WriteUnmatched(3), w.WriteLeaks(sums), w.Close()); err != nil {
		t.Fatal(err)
	}
	want := "version=2.0, \n## unmatched frees: 3\n" +
		"# Resource - memory (memory allocation in bytes):\n# 7 block(s) leaked with total size of 665 bytes\n" +
		"# Resource - fd (x):\n# 3000000000 block(s) leaked with total size of 1099511627776 bytes\n"
	if b.String() != want {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, b.String()))
	}
}

func TestWritesEndAtEvents(t *testing.T) {
	var p pieces
	w, _ := New(&p, Options{})
	c := call(trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: 1, Stack: trace.Stack{Frames: make([]uint64, 50)}})
	for range 3000 {
		if err := w.WriteRecord(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if len(p.writes) < 5 {
		t.Fatalf("%d writes: not buffered as expected", len(p.writes))
	}
	for i, s := range p.writes {
		if !strings.HasSuffix(s, "\n\n") {
			t.Errorf("write %d ends in %q", i, s[max(0, len(s)-20):])
		}
	}
}

func TestFlushKeepsHeaderBack(t *testing.T) {
	var p pieces
	w, _ := New(&p, Options{Location: time.UTC})
	if err := errors.Join(w.WriteRecord(header()), w.Flush()); err != nil || len(p.writes) != 0 {
		t.Fatalf("%v, %q written before the process is known", err, p.writes)
	}
	if err := errors.Join(w.WriteRecord(process()), w.Flush()); err != nil || len(p.writes) != 1 || p.writes[0] != headerLine {
		t.Fatalf("%v, %q", err, p.writes)
	}
}

func TestWriteError(t *testing.T) {
	bad := errors.New("disk full")
	p := pieces{err: bad}
	w, _ := New(&p, Options{})
	if err := w.WriteRecord(process()); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); !errors.Is(err, bad) {
		t.Errorf("Flush: %v", err)
	}
	for name, err := range map[string]error{
		"WriteRecord": w.WriteRecord(process()), "Flush": w.Flush(), "Close": w.Close(),
		"WriteLeaks": w.WriteLeaks(nil), "WriteUnmatched": w.WriteUnmatched(1),
	} {
		if !errors.Is(err, bad) {
			t.Errorf("%s after an error: %v", name, err)
		}
	}
	if _, err := New(nil, Options{}); err == nil {
		t.Error("New without a writer succeeds")
	}
}

func TestNoAllocationPerCall(t *testing.T) {
	w, _ := New(discard{}, Options{})
	frames := []uint64{0x55c9757eb1b8, 0x55c9757eb1f1, 0x7f10d7f2424a, 0x55c9757eb0e1}
	records := []*trace.Record{benchCall(0, frames), benchCall(1, frames)}
	if err := errors.Join(w.WriteRecord(header()), w.WriteRecord(process())); err != nil {
		t.Fatal(err)
	}
	i := 0
	if n := testing.AllocsPerRun(5000, func() {
		if err := w.WriteRecord(records[i%2]); err != nil {
			t.Fatal(err)
		}
		i++
	}); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}

// BenchmarkEncode writes calls of which every second has a stack of 10 frames.
func BenchmarkEncode(b *testing.B) {
	w, _ := New(discard{}, Options{})
	frames := make([]uint64, 10)
	for i := range frames {
		frames[i] = 0x55c9757eb1b8 + uint64(i)*0x1f3
	}
	records := []*trace.Record{benchCall(0, frames), benchCall(1, frames)}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if err := w.WriteRecord(records[i%2]); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(1e3/(float64(b.Elapsed().Nanoseconds())/float64(b.N)), "Mcalls/s")
}

// pieces is a writer that remembers each Write.
type pieces struct {
	writes []string
	err    error
}

func (p *pieces) Write(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	p.writes = append(p.writes, string(b))
	return len(b), nil
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func benchCall(i int, frames []uint64) *trace.Record {
	r := call(trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: 0x55c9a22662a0, Size: 100, Resource: 1})
	if i%2 == 0 {
		r.Call.Stack.Frames = frames
	} else {
		r.Call.Op, r.Call.Function = trace.OpFree, "free"
	}
	return r
}

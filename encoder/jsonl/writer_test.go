package jsonl_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/internal/jsonrecord"
	"rtrace-bpf/trace"
)

const first = `{"format":"rtrace-jsonl","version":1}` + "\n"

func TestRefused(t *testing.T) {
	var out bytes.Buffer
	w := jsonl.New(&out)
	for _, r := range []*trace.Record{
		{},
		{Kind: trace.KindEnd + 1},
		{Kind: trace.KindCall, Call: trace.Call{Stack: trace.Stack{Frames: []uint64{1, 2}, Names: []string{"a"}}}},
	} {
		if err := w.WriteRecord(r); err == nil {
			t.Errorf("%v is written", r.Kind)
		}
	}
	if err := w.WriteRecord(&trace.Record{Kind: trace.KindEnd}); err != nil {
		t.Errorf("after a refused record: %v", err)
	}
	if err := w.Close(); err != nil || out.String() != first+"{\"kind\":\"end\"}\n" {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestEmptyTrace(t *testing.T) {
	var out bytes.Buffer
	w := jsonl.New(&out)
	if err := w.Close(); err != nil || out.String() != first {
		t.Errorf("%v: %q", err, out.String())
	}
	if err := w.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if err := w.WriteRecord(&trace.Record{Kind: trace.KindEnd}); err == nil {
		t.Error("written after Close")
	}
}

// pieces records each Write.
type pieces struct{ writes []string }

func (p *pieces) Write(b []byte) (int, error) {
	p.writes = append(p.writes, string(b))
	return len(b), nil
}

func TestWritesAreWholeLines(t *testing.T) {
	var out pieces
	w := jsonl.New(&out)
	for i := range 2000 {
		r := trace.Record{Kind: trace.KindComment, Time: int64(i), Comment: strings.Repeat("x", i*7%1000)}
		if i == 1000 {
			r.Comment = strings.Repeat("long", 100_000)
		}
		if err := w.WriteRecord(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if len(out.writes) < 10 {
		t.Errorf("%d writes: the output is not passed on as it grows", len(out.writes))
	}
	for i, s := range out.writes {
		if !strings.HasSuffix(s, "\n") || !strings.HasPrefix(s, "{") {
			t.Errorf("write %d is not made of whole lines: %.40q…", i, s)
		}
	}
	if got := strings.Count(strings.Join(out.writes, ""), "\n"); got != 2001 {
		t.Errorf("%d lines", got)
	}
}

type failing struct {
	n   int
	err error
}

func (f failing) Write(b []byte) (int, error) { return f.n, f.err }

func TestWriteErrors(t *testing.T) {
	full := errors.New("disk full")
	for _, tt := range []struct {
		w    io.Writer
		want error
	}{{failing{0, full}, full}, {failing{1, nil}, io.ErrShortWrite}} {
		w := jsonl.New(tt.w)
		if err := w.Flush(); !errors.Is(err, tt.want) {
			t.Errorf("Flush: %v", err)
		}
		if err := w.WriteRecord(&trace.Record{Kind: trace.KindEnd}); !errors.Is(err, tt.want) {
			t.Errorf("WriteRecord: %v", err)
		}
		if err := w.Close(); !errors.Is(err, tt.want) {
			t.Errorf("Close: %v", err)
		}
	}
}

func sample() *trace.Record {
	return &trace.Record{Kind: trace.KindCall, Time: 123456789012345, PID: 4711, TID: 4712, CPU: 2, Call: trace.Call{
		Seq: 1 << 20, Op: trace.OpAlloc, Function: "malloc", Resource: 1, ID: 0x55c9a22662a0, Size: 100,
		Stack: trace.Stack{Frames: []uint64{
			0x55c9757eb1b8, 0x55c9757eb1f1, 0x55c9757eb2bb, 0x7f10d7f2424a,
			0x7f10d7f24305, 0x55c9757eb0e1, 0x55c9757eb0e2, 0x55c9757eb0e3,
		}, End: trace.StackComplete},
	}}
}

func TestNoAllocations(t *testing.T) {
	w := jsonl.New(io.Discard)
	r := sample()
	if n := testing.AllocsPerRun(2000, func() { _ = w.WriteRecord(r) }); n != 0 {
		t.Errorf("%v allocations per record", n)
	}
}

func BenchmarkWriteRecord(b *testing.B) {
	w := jsonl.New(io.Discard)
	r := sample()
	line, err := jsonrecord.Append(nil, r)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(line) + 1))
	b.ReportAllocs()
	for b.Loop() {
		if err := w.WriteRecord(r); err != nil {
			b.Fatal(err)
		}
	}
}

package mtrc

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"rtrace-bpf/trace"
)

const (
	little64 = "MTRC\x01\x00\x00\x00\x00\x00\x00\x00\x05\x29\x00\x00\x00\x00\x00\x00"
	big64    = "MTRC\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x29\x05"
	little32 = "MTRC\x01\x00\x00\x00\x05\x29\x00\x00"
	big32    = "MTRC\x00\x00\x00\x01\x00\x00\x29\x05"
)

func write(t testing.TB, o Options, records ...*trace.Record) (string, Stats) {
	t.Helper()
	var out bytes.Buffer
	w, err := New(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteRecord(&trace.Record{Kind: trace.KindEnd}); err == nil {
		t.Error("a closed writer takes records")
	}
	return out.String(), w.Stats()
}

func header(h trace.Header) *trace.Record { return &trace.Record{Kind: trace.KindHeader, Header: h} }

func TestHeaders(t *testing.T) {
	for _, tt := range []struct {
		name   string
		opts   Options
		header *trace.Record
		want   string
	}{
		{"nothing known", Options{}, header(trace.Header{}), little64},
		{"no header", Options{}, &trace.Record{Kind: trace.KindThread}, little64},
		{"64-bit big", Options{}, header(trace.Header{PointerSize: 8, BigEndian: true}), big64},
		{"32-bit", Options{}, header(trace.Header{PointerSize: 4}), little32},
		{"32-bit big", Options{}, header(trace.Header{PointerSize: 4, BigEndian: true}), big32},
		{"words 4", Options{Words: 4}, header(trace.Header{PointerSize: 8}), little32},
		{"words 8", Options{Words: 8}, header(trace.Header{PointerSize: 4}), little64},
		{"legacy", Options{Legacy: true}, header(trace.Header{PointerSize: 4, Format: "mtrc", Version: "1.3.0"}), little64},
		{"version kept", Options{}, header(trace.Header{PointerSize: 4, Format: "mtrc", Version: "1.4.5"}), "MTRC\x01\x00\x00\x00\xa5\x28\x00\x00"},
		{"version of another format", Options{}, header(trace.Header{PointerSize: 4, Format: "sprtrace", Version: "1.4.5"}), little32},
		{"version that is refused", Options{}, header(trace.Header{PointerSize: 4, Format: "mtrc", Version: "1.6.0"}), little32},
		{"no version", Options{}, header(trace.Header{PointerSize: 4, Format: "mtrc", Version: "1.5"}), little32},
		{"version 0", Options{}, header(trace.Header{PointerSize: 8, Format: "mtrc", Version: "0.0.0"}), "MTRC\x01\x00\x00\x00\x00\x00\x00\x00" + strings.Repeat("\x00", 8)},
		{"version 0 in 32 bits", Options{}, header(trace.Header{PointerSize: 4, Format: "mtrc", Version: "0.0.0"}), little32},
	} {
		if got, _ := write(t, tt.opts, tt.header); got != tt.want+"MTRC" {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want+"MTRC")
		}
	}
	if got, _ := write(t, Options{}); got != little64+"MTRC" {
		t.Errorf("no record at all: %q", got)
	}
}

func TestStreams(t *testing.T) {
	call := parse(t, "alloc 16*8")
	const event = "A\x01\x10\x08\x00\x00\x00\x00"
	end, process := &trace.Record{Kind: trace.KindEnd}, &trace.Record{Kind: trace.KindProcess}
	first, second := header(trace.Header{}), header(trace.Header{PointerSize: 4, BigEndian: true})
	for _, tt := range []struct {
		name    string
		records []*trace.Record
		want    string
	}{
		{"one", []*trace.Record{first, process, call, end}, little64 + event + "MTRC"},
		{"cut", []*trace.Record{first, process, call}, little64 + event + "MTRC"},
		{"two", []*trace.Record{first, process, call, end, second, process, call, end}, little64 + event + "MTRC" + big32 + event + "MTRC"},
		{"a cut one and another", []*trace.Record{first, process, call, second, process, call, end}, little64 + event + "MTRC" + big32 + event + "MTRC"},
		{"a process behind the end", []*trace.Record{first, process, call, end, process}, little64 + event + "MTRC" + little64 + "MTRC"},
		{"a call behind the end", []*trace.Record{first, process, end, call}, little64 + "MTRC" + little64 + event + "MTRC"},
		{"an exit behind the end", []*trace.Record{first, process, end, {Kind: trace.KindExit}}, little64 + "MTRC"},
		{"two processes at once", []*trace.Record{first, process, parse(t, "alloc 1:16*8"), process, parse(t, "alloc 2:16*8"), end}, little64 + event + "A\x02\x10\x08\x00\x00\x00\x00MTRC"},
	} {
		if got, _ := write(t, Options{}, tt.records...); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestWriterNames(t *testing.T) {
	a := parse(t, "alloc 16*8")
	a.Call.Caller = trace.Caller{Function: "f\x00g", File: strings.Repeat("x", 1024), Line: 300}
	f := parse(t, "free 16")
	f.Call.Caller = trace.Caller{Function: "f", File: strings.Repeat("x", 1023)}
	want := little64 + "A\x01\x10\x08\x00\x81f\x00\x81" + strings.Repeat("x", 1023) + "\x00\xac\x02" + "F\x01\x00\x01\x01\x00MTRC"
	got, stats := write(t, Options{}, a, f)
	if got != want || stats.CutNames != 2 {
		t.Errorf("%q, %+v", got, stats)
	}
	if lines := stats.Remarks(); len(lines) != 1 || lines[0] != "2 times a name was cut" {
		t.Errorf("%q", lines)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{Words: 2}, {Words: 16}, {Words: 4, Legacy: true}} {
		if _, err := New(io.Discard, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if _, err := New(nil, Options{}); err == nil {
		t.Error("no writer is accepted")
	}
}

// pieces records each Write, and fails after some of them.
type pieces struct {
	all   []string
	fails int
	short bool
}

func (p *pieces) Write(b []byte) (int, error) {
	if p.fails--; p.fails == 0 {
		if p.short {
			return len(b) - 1, nil
		}
		return 0, errDisk
	}
	p.all = append(p.all, string(b))
	return len(b), nil
}

var errDisk = errors.New("disk full")

// A pipe gets the header as soon as the trace has one, and whole records.
func TestFlush(t *testing.T) {
	var out pieces
	w, err := New(&out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{
		w.Flush, // nothing yet
		func() error { return w.WriteRecord(header(trace.Header{PointerSize: 4})) },
		w.Flush,
		func() error { return w.WriteRecord(parse(t, "alloc 16*8")) },
		w.Flush, w.Flush, w.Close,
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{little32, "A\x01\x10\x08\x00\x00\x00\x00", "MTRC"}
	if strings.Join(out.all, "|") != strings.Join(want, "|") {
		t.Errorf("%q, want %q", out.all, want)
	}
}

func TestWriteErrors(t *testing.T) {
	for _, short := range []bool{false, true} {
		w, err := New(&pieces{fails: 2, short: short}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := errDisk
		if short {
			want = io.ErrShortWrite
		}
		a, f := parse(t, "alloc 16*8"), parse(t, "free 16")
		for err == nil {
			if err = w.WriteRecord(a); err == nil {
				err = w.WriteRecord(f)
			}
		}
		if !errors.Is(err, want) || !strings.HasPrefix(err.Error(), "writing mtrc: ") {
			t.Errorf("%v", err)
		}
		if !errors.Is(w.Flush(), want) || !errors.Is(w.Close(), want) || !errors.Is(w.WriteRecord(a), want) {
			t.Error("the error does not stick")
		}
	}
}

func TestNoAllocation(t *testing.T) {
	for _, o := range []Options{{}, {Legacy: true}} {
		w, err := New(io.Discard, o)
		if err != nil {
			t.Fatal(err)
		}
		a, f := parse(t, "alloc 16*8"), parse(t, "free 16")
		names := [...]string{"a", "b", strings.Repeat("c", 40)}
		i := 0
		if n := testing.AllocsPerRun(20_000, func() {
			a.Call.Caller.Function, f.Call.Caller.File = names[i%3], names[i/3%3]
			i++
			if err := errors.Join(w.WriteRecord(a), w.WriteRecord(f)); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%+v: %v allocations per record", o, n)
		}
	}
}

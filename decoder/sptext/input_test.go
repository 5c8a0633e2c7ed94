package sptext

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/trace"
)

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		opts   Options
		text   string
		n      int // number of records before the error
		offset int64
		want   error
	}{
		{"empty", Options{}, "", 0, 0, trace.ErrTruncated},
		{"no trace", Options{}, "daemon:x:1:1:daemon:/usr/sbin:/bin/sh\nmore\n", 0, 0, trace.ErrMalformed},
		{"cut call", Options{}, "pid=1, \n1. f(0x1)\n\n2. g(0x12", 3, 19, trace.ErrTruncated},
		{"cut frame", Options{}, "pid=1, \n1. f(0x1)\n\t0x12\n\t0x3", 3, 24, trace.ErrTruncated},
		{"too many calls for one stack", Options{MaxGroup: 2}, "pid=1, \n1. f(0x1)\n2. f(0x1)\n3. f(0x1)\n\n", 4, 28, trace.ErrLimit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(t, tt.opts, tt.text)
			se, ok := errors.AsType[*trace.SyntaxError](err)
			if !ok || !errors.Is(err, tt.want) || se.Offset != tt.offset {
				t.Fatalf("error %v, want %v at %d", err, tt.want, tt.offset)
			}
			if len(got) != tt.n {
				t.Errorf("%d records, want %d", len(got), tt.n)
			}
		})
	}
	got, err := read(t, Options{}, "pid=1, \n1. f(0x1)\n\t0x12\n\t0x3")
	if s := got[2].Call.Stack; err == nil || s.End != trace.StackTruncated || len(s.Frames) != 1 {
		t.Errorf("stack before the cut: %+v, %v", s, err)
	}
	// The original uses what is there.
	got, err = read(t, Options{Legacy: true}, "pid=1, \n1. f(0x1)\n\t0x12\n\t0x3")
	if err != nil || len(got[2].Call.Stack.Frames) != 2 {
		t.Errorf("legacy: %v, %v", got[2].Call.Stack, err)
	}
}

func TestErrorStays(t *testing.T) {
	bad := errors.New("bad disk")
	d, _ := New(io.MultiReader(strings.NewReader("pid=1, \n1. f(0x1)\n\t0x12\n\n"), iotest.ErrReader(bad)), Options{})
	got, err := trace.Load(d)
	if len(got) != 3 || err != bad {
		t.Fatalf("%d records, %v", len(got), err)
	}
	var r trace.Record
	if err := d.ReadRecord(&r); err != bad {
		t.Errorf("second error: %v", err)
	}
}

func TestWarnings(t *testing.T) {
	text := head + "\t0x1\n\t$a = b\nfree text\n## fine\n1. f(0x1)\n\n\t0x2\nlast"
	var got []string
	if _, err := read(t, Options{Legacy: true, Warn: func(s string) { got = append(got, s) }}, text); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"WARNING: found a backtrace record without preceding function call record\n",
		"WARNING: found a function argument record without preceding function call record\n",
		"WARNING: unrecognized record, assuming it's a comment: free text\n",
		"WARNING: found a backtrace record without preceding function call record\n",
		"WARNING: unrecognized record, assuming it's a comment: last",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
	if _, err := read(t, Options{Warn: func(s string) { t.Errorf("warning %q without legacy", s) }}, text+"\n"); err != nil {
		t.Fatal(err)
	}
}

func TestLongLines(t *testing.T) {
	for _, n := range []int{4093, 4094, 4095, 4096, 10000, maxLine - 1, maxLine, maxLine + 1, 3 * maxLine} {
		text := head + "#" + strings.Repeat("x", n-1) + "\n1. f(0x1)\n\n"
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(text), "halves": iotest.HalfReader(strings.NewReader(text)),
		} {
			for _, legacy := range []bool{false, true} {
				d, _ := New(r, Options{Legacy: legacy})
				got, err := trace.Load(d)
				r = strings.NewReader(text)
				if err != nil || len(got) != 4 || got[3].Kind != trace.KindCall {
					if legacy && n > maxLine && err == nil { // the line is read in parts
						continue
					}
					t.Fatalf("%d bytes, %s, legacy %v: %d records, %v", n, name, legacy, len(got), err)
				}
				if l := len(got[2].Comment); l != n && (legacy || l != maxLine) {
					t.Errorf("%d bytes, %s, legacy %v: comment of %d bytes", n, name, legacy, l)
				}
			}
		}
	}
}

// TestPieces: the original parses each 4095 bytes of a line separately.
func TestPieces(t *testing.T) {
	text := head + strings.Repeat("#", 4095) + ": /x => 0x1-0x2\n"
	got, err := read(t, Options{Legacy: true}, text)
	if err != nil || len(got) != 4 || got[2].Kind != trace.KindMapping && got[3].Kind != trace.KindMapping {
		t.Errorf("%d records, %v", len(got), err)
	}
	if got, err := read(t, Options{}, text); err != nil || len(got) != 3 {
		t.Errorf("without legacy: %d records, %v", len(got), err)
	}
}

func TestOneByteReads(t *testing.T) {
	text := head + "1. f(0x1)\n\t0x10\n\t0x20 x y\n\n## c\n"
	whole, err := read(t, Options{}, text)
	if err != nil {
		t.Fatal(err)
	}
	d, _ := New(iotest.OneByteReader(strings.NewReader(text)), Options{Location: time.UTC})
	got, err := trace.Load(d)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(whole, got, diffOptions); d != "" {
		t.Errorf("one byte at a time (-whole +got):\n%s", d)
	}
}

func TestNew(t *testing.T) {
	if _, err := New(nil, Options{}); err == nil {
		t.Error("New without a reader succeeds")
	}
	if _, err := New(strings.NewReader(""), Options{MaxGroup: -1}); err == nil {
		t.Error("New with a negative limit succeeds")
	}
	d, _ := New(iotest.ErrReader(nil), Options{})
	var r trace.Record
	if err := d.ReadRecord(&r); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that never reads: %v", err)
	}
}

func TestAllocations(t *testing.T) {
	const calls = 20000
	var b bytes.Buffer
	b.WriteString(head)
	for range calls {
		b.WriteString("1. [00:42:22.936] malloc(100) = 0x55c9a22662a0\n\t0x55c9757eb1b8\n\t0x55c9757eb1f1\n\n")
	}
	text := b.Bytes()
	n := testing.AllocsPerRun(1, func() {
		d, _ := New(bytes.NewReader(text), Options{})
		var r trace.Record
		for d.ReadRecord(&r) == nil {
		}
	})
	if n > 200 {
		t.Errorf("%v allocations for %d calls", n, calls)
	}
}
